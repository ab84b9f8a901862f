import assert from "node:assert/strict";
import { dirname, join, normalize } from "node:path/posix";
import manifest from "../../deno.json" with { type: "json" };
import { listShared, readShared } from "../checks/text.ts";
import { anchorsIn, linksIn, withoutBlocks } from "./markdown.ts";

/** The files of the repository, as git knows them. */
const shared = await readShared();
/** Those among them that are no text: pictures. */
const pictures = new Set((await listShared()).filter((path) => !shared.has(path)));
const documents = [...shared].filter(([path]) => path.endsWith(".md"));
const folders = new Set([...shared.keys()].flatMap((path) => {
  const parts = path.split("/");
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
}));

/** What is wrong with a link, or `null`. */
function linkFault(from: string, target: string): string | null {
  if (/^[a-z][a-z\d+.-]*:/i.test(target)) {
    return target.startsWith("https://") ? null : "a link to the web must be https";
  }
  const [path = "", fragment] = target.split("#");
  const file = path === "" ? from : normalize(join(dirname(from), decodeURIComponent(path)));
  const text = shared.get(file);
  if (text === undefined) {
    return fragment === undefined && (pictures.has(file) || folders.has(file.replace(/\/$/, "")))
      ? null
      : `${file} is no file of the repository`;
  }
  if (fragment === undefined || anchorsIn(text).has(fragment)) return null;
  return `${file} has no heading for #${fragment}`;
}

/** What looks like a file of ours in code marks: with one of our folders before it and an extension behind it. */
const NAMED_FILE =
  /`((?:lib|handlers|tests|deploy|docs)\/[\w./-]+\.(?:tsx?|md|ya?ml|json|sh)|main\.ts)`/g;

/** What looks like a task. */
const NAMED_TASK = /\bdeno(?:@[\d.]+)? task ([a-z][\w-]*)/g;

Deno.test("every relative link of every document leads to a file, and its fragment to a heading", () => {
  assert.ok(documents.length > 30);
  const faults = documents.flatMap(([path, text]) =>
    linksIn(text).flatMap(({ target, line }) => {
      const fault = linkFault(path, target);
      return fault === null ? [] : [`${path}:${line}: ${fault}`];
    })
  );
  assert.deepEqual(faults, []);
});

Deno.test("every file that a document names exists", () => {
  const missing = documents.flatMap(([path, text]) =>
    [...withoutBlocks(text).matchAll(NAMED_FILE)].flatMap(([, file = ""]) =>
      shared.has(file) ? [] : [`${path}: ${file}`]
    )
  );
  assert.deepEqual(missing, []);
});

Deno.test("every task that a page of docs names exists", () => {
  const tasks: ReadonlySet<string> = new Set(Object.keys(manifest.tasks));
  const missing = documents.filter(([path]) => path.startsWith("docs/")).flatMap(([path, text]) =>
    [...text.matchAll(NAMED_TASK)].flatMap(([, task = ""]) =>
      tasks.has(task) ? [] : [`${path}: ${task}`]
    )
  );
  assert.deepEqual(missing, []);
});

Deno.test("the index of docs leads to every page", () => {
  const index = shared.get("docs/README.md") ?? "";
  const linked = new Set(linksIn(index).map(({ target }) => normalize(join("docs", target))));
  const pages = documents.map(([path]) => path).filter((path) =>
    /^docs\/[^/]+\.md$/.test(path) && path !== "docs/README.md"
  );
  assert.deepEqual(pages.filter((path) => !linked.has(path)), []);
});

/** The tests that a decision names: a link to a file of tests, and below it the names in quotes. */
function testsNamedIn(markdown: string): { readonly file: string; readonly name: string }[] {
  const [, section = ""] = markdown.split("\n## Tested\n");
  let file = "";
  return section.split(/^(?= *- )/m).flatMap((item) => {
    const text = item.trim().replaceAll(/\s+/g, " ");
    file = /^- \[([^\]]+)\]/.exec(text)?.[1] ?? file;
    const name = /^- "(.+)"$/.exec(text)?.[1];
    return name === undefined ? [] : [{ file, name }];
  });
}

Deno.test("each difference has its decision, which says where it is tested", () => {
  const decisions = documents.filter(([path]) => /^docs\/adr\/02\d\d-/.test(path));
  const numbers = decisions.map(([path]) => Number(path.slice("docs/adr/".length).slice(0, 4)));
  assert.deepEqual(numbers.sort(), Array.from({ length: 28 }, (_, at) => 200 + at));
  for (const [path, text] of decisions) {
    assert.ok(text.includes("\n## Tested\n"), `${path} must say where it is tested`);
  }
});

Deno.test("every test that a document names under Tested exists", () => {
  const missing = documents.flatMap(([path, text]) =>
    testsNamedIn(text).flatMap(({ file, name }) =>
      shared.get(file)?.includes(name) ? [] : [`${path}: ${file} has no test "${name}"`]
    )
  );
  assert.deepEqual(missing, []);
});

Deno.test("planted faults are seen: a lost file, a lost heading, a lost test, an insecure link", () => {
  assert.match(linkFault("docs/README.md", "gone.md") ?? "", /docs\/gone\.md is no file/);
  assert.match(linkFault("docs/README.md", "../lib/gone") ?? "", /lib\/gone is no file/);
  assert.match(linkFault("README.md", "CONTRIBUTING.md#gone") ?? "", /no heading for #gone/);
  assert.match(linkFault("README.md", "http://example.com") ?? "", /https/);
  assert.equal(linkFault("docs/README.md", "../lib/lease"), null);
  assert.equal(linkFault("README.md", "CONTRIBUTING.md#rules-of-the-house"), null);
  assert.deepEqual(linksIn('```md\n[a](b)\n```\n`[c](d)` [e](f "g")\n'), [{
    target: "f",
    line: 4,
  }]);
  assert.deepEqual(
    testsNamedIn('x\n## Tested\n\n- [tests/a_test.ts](../a):\n  - "one of\n    two lines"\n'),
    [{ file: "tests/a_test.ts", name: "one of two lines" }],
  );
});
