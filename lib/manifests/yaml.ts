/**
 * Kubernetes objects as one YAML text.
 *
 * @module
 */

import { Document, Scalar, visit } from "yaml";

/**
 * Writes objects as one text of several documents, each with `---` before it. The same objects give the same bytes.
 *
 * Kubernetes reads YAML by the rules of version 1.1, where `on` is a boolean and `1:20` a number, and by some of 1.2. So
 * every text that either could take for something else is quoted, and no text is folded over lines.
 */
export function renderYaml(objects: readonly object[]): string {
  return objects.map((object) => `---\n${renderDocument(object)}`).join("");
}

/** What no version takes for a number. The words that one takes for a boolean are quoted by the rules of 1.1. */
const NO_NUMBER = /^[A-Za-z/]/;

function renderDocument(object: object): string {
  // An object that is used twice is written twice: people read and edit what comes out.
  const document = new Document(object, { version: "1.1", aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === "string" && !NO_NUMBER.test(node.value)) {
        node.type = Scalar.QUOTE_DOUBLE;
      }
    },
  });
  return document.toString({ directives: false, blockQuote: false, lineWidth: 0 });
}
