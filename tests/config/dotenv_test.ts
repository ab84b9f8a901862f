import assert from "node:assert/strict";
import fc from "fast-check";
import { DotenvError, parseDotenv } from "../../lib/config/dotenv.ts";

const read = (text: string) => Object.fromEntries(parseDotenv(".env", text));

Deno.test("names and values are read, with comments, quotes and export", () => {
  const text = [
    "# a comment",
    "",
    "A=1",
    "  B = two words  ",
    "export C='single # \"quoted\" \\n'",
    'D="double \\n \\"quoted\\" \\\\ \\$X" # comment',
    "E=",
    "F=a#b # comment",
    "G= # only a comment",
    "H=it's",
    "I.J=dotted",
    "K='first",
    "second'",
    "L=last",
  ].join("\n");
  assert.deepEqual(read(text), {
    A: "1",
    B: "two words",
    C: 'single # "quoted" \\n',
    D: 'double \n "quoted" \\ $X',
    E: "",
    F: "a#b",
    G: "",
    H: "it's",
    "I.J": "dotted",
    K: "first\nsecond",
    L: "last",
  });
});

Deno.test("a dollar sign has no meaning", () => {
  assert.deepEqual(read('A=1\nB=$A ${A}\nC="$A"'), { A: "1", B: "$A ${A}", C: "$A" });
});

Deno.test("Windows line ends and a byte order mark are taken off", () => {
  assert.deepEqual(read("\uFEFFA=1\r\nB='x'\r\n"), { A: "1", B: "x" });
});

Deno.test("the first of two lines with one name wins", () => {
  assert.deepEqual(read("A=1\nA=2"), { A: "1" });
});

Deno.test("a line that does not parse is told by its path and number, and never by its text", () => {
  const table: readonly (readonly [string, number])[] = [
    ["hunter2", 1],
    ["A=1\n\n# x\n=hunter2", 4],
    ["A=1\n2A=hunter2", 2],
    ["A='hunter2", 1],
    ['A=1\nB="hunter2\nC=3', 2],
    ["A='x' hunter2", 1],
    ['A="x"hunter2', 1],
    ["A-B=hunter2", 1],
  ];
  for (const [text, line] of table) {
    assert.throws(() => read(text), (error) => {
      assert(error instanceof DotenvError);
      assert.equal(error.line, line, text);
      assert.equal(error.path, ".env");
      assert.match(error.message, new RegExp(`\\.env as line ${line} is`));
      assert(!`${error.message}${error.stack}${JSON.stringify(error)}`.includes("hunter2"));
      return true;
    });
  }
});

Deno.test("any value survives single quotes, unless it has one in it", () => {
  const value = fc.string().filter((text) => !text.includes("'") && !text.includes("\r"));
  fc.assert(fc.property(value, (text) => {
    assert.deepEqual(read(`A='${text}'\nB=1`), { A: text, B: "1" });
  }));
});

Deno.test("any text is read or refused, and never anything else", () => {
  fc.assert(fc.property(fc.string(), (text) => {
    try {
      parseDotenv(".env", text);
    } catch (error) {
      assert(error instanceof DotenvError);
    }
  }));
});
