import assert from "node:assert/strict";
import ts from "typescript";
import { pathOf, ROOT } from "../checks/shell.ts";

const FOLDER = pathOf(new URL("handlers/http/status_page/browser/", ROOT));

/** The browser's own types are large: they are read once. */
const libraries = new Map<string, ts.SourceFile | undefined>();

/** What the compiler says of a script, with the types of a browser and of its own comments. */
function complaints(texts: Readonly<Record<string, string>>): readonly string[] {
  const options: ts.CompilerOptions = {
    allowJs: true,
    checkJs: true,
    strict: true,
    noUncheckedIndexedAccess: true,
    noUnusedLocals: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const read = host.readFile;
  host.readFile = (path) => texts[path] ?? read(path);
  const getSourceFile = host.getSourceFile;
  host.getSourceFile = (path, version, ...rest) => {
    const text = texts[path];
    if (text !== undefined) return ts.createSourceFile(path, text, version, true);
    if (path.startsWith(FOLDER)) return getSourceFile(path, version, ...rest);
    if (!libraries.has(path)) libraries.set(path, getSourceFile(path, version, ...rest));
    return libraries.get(path);
  };
  const program = ts.createProgram([`${FOLDER}page.js`], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1;
    const name = file?.fileName.slice(FOLDER.length) ?? "";
    return `${name}:${line}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
  });
}

Deno.test("the page's script keeps to the types of the browser and to those that it declares", () => {
  assert.deepEqual(complaints({}), []);
});

Deno.test("a mistake in the page's script is found", async () => {
  const path = `${FOLDER}page.js`;
  const text = await Deno.readTextFile(path);
  const planted = text.replace("socket.onclose = lose;", "socket.onclosed = lose;");
  assert.notEqual(planted, text);
  assert.match(complaints({ [path]: planted }).join("\n"), /onclosed/);
});
