import assert from "node:assert/strict";
import { z } from "zod";
import { parseDotenv } from "../../lib/config/dotenv.ts";
import { DemoProcess } from "../handlers/commands/demo/demo_process.ts";
import { type Block, blocksIn, readDocument } from "./markdown.ts";

/** What changes from run to run, and the form that it has all the same. */
const CHANGING_HEADERS: Readonly<Record<string, RegExp>> = {
  "x-lease-fence": /^\d+$/,
  "retry-after": /^\d+$/,
};
const CHANGING_MEMBERS: Readonly<Record<string, RegExp>> = {
  token: /^[0-9a-f]{64}$/,
  expiresAt: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/,
};

interface HttpAnswer {
  readonly status: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Reads an answer, as the page shows it and as `curl -i` prints it. */
function parseAnswer(text: string): HttpAnswer {
  const [head = "", body = ""] = text.replaceAll("\r", "").trimEnd().split(/\n\n/);
  const [first = "", ...lines] = head.split("\n");
  const headers = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return { status: first, headers: new Map(headers), body };
}

/** The same value, with what changes replaced by its name. What does not have its form stays, and is seen. */
function settled(value: unknown, name: string, isShown: boolean): unknown {
  const form = CHANGING_MEMBERS[name];
  if (form !== undefined && typeof value === "string" && (isShown || form.test(value))) {
    return `a ${name}`;
  }
  if (Array.isArray(value)) return value.map((item) => settled(item, "", isShown));
  const members = z.record(z.string(), z.unknown()).safeParse(value);
  if (!members.success) return value;
  return Object.fromEntries(
    Object.entries(members.data).map((
      [member, inner],
    ) => [member, settled(inner, member, isShown)]),
  );
}

function assertLike(actual: HttpAnswer, shown: HttpAnswer, example: string): void {
  assert.equal(actual.status, shown.status, example);
  for (const [name, value] of shown.headers) {
    const found = actual.headers.get(name) ?? "";
    const form = CHANGING_HEADERS[name];
    if (form === undefined) assert.equal(found, value, `${name} of ${example}`);
    else assert.match(found, form, `${name} of ${example}`);
  }
  if (shown.body === "") return assert.equal(actual.body, "", example);
  assert.deepEqual(
    settled(JSON.parse(actual.body), "", false),
    settled(JSON.parse(shown.body), "", true),
    example,
  );
}

/** The examples, each with the answer that the page shows behind it. */
function examplesIn(blocks: readonly Block[]) {
  return blocks.flatMap(({ language, text }, at) => {
    if (language !== "sh") return [];
    const next = blocks[at + 1];
    return [{ script: text, shown: next?.language === "http" ? next.text : null }];
  });
}

const SEPARATOR = "----- end of an example -----";

Deno.test("the examples of docs/api.md, run from top to bottom, have the answers that it shows", async () => {
  const examples = examplesIn(blocksIn(await readDocument("docs/api.md")));
  const calls = examples.filter(({ shown }) => shown !== null).length;
  assert.ok(calls >= 8, "the page must show calls and their answers");
  const folder = await Deno.makeTempDir();
  try {
    const envFile = `${folder}/demo.env`;
    await using demo = await DemoProcess.start(["--env-file", envFile]);
    await demo.ready();
    const variables = parseDotenv(envFile, await Deno.readTextFile(envFile));
    const script = examples.map((example) => `${example.script}\necho '${SEPARATOR}'`).join("\n");
    const { code, stdout, stderr } = await new Deno.Command("bash", {
      args: ["-e", "-u", "-o", "pipefail", "-c", script],
      // A proxy of the user must not come in between.
      env: { ...Object.fromEntries(variables), no_proxy: "*", NO_PROXY: "*" },
    }).output();
    assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""]);
    const outputs = new TextDecoder().decode(stdout).split(`${SEPARATOR}\n`);
    for (const [at, { script, shown }] of examples.entries()) {
      if (shown === null) assert.equal(outputs[at], "", script);
      else assertLike(parseAnswer(outputs[at] ?? ""), parseAnswer(shown), script);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a planted answer that differs in status, header or body is seen", () => {
  const actual = parseAnswer('HTTP/1.1 200 OK\r\nA: b\r\n\r\n{"expiresAt":"soon","x":1}\n');
  const time = '{"expiresAt":"2026-01-01T00:00:00Z","x":1}';
  const good = parseAnswer(`HTTP/1.1 200 OK\nA: b\n\n${time}`);
  assertLike(parseAnswer(`HTTP/1.1 200 OK\r\nA: b\r\n\r\n${time}`), good, "a good one");
  for (
    const shown of [
      `HTTP/1.1 201 Created\nA: b\n\n{"expiresAt":"soon","x":1}`,
      `HTTP/1.1 200 OK\nA: c\n\n{"expiresAt":"soon","x":1}`,
      `HTTP/1.1 200 OK\nA: b\n\n{"expiresAt":"soon","x":2}`,
      `HTTP/1.1 200 OK\nA: b\n\n${time}`,
      "HTTP/1.1 200 OK\nA: b",
    ]
  ) {
    assert.throws(
      () => assertLike(actual, parseAnswer(shown), "a planted one"),
      assert.AssertionError,
    );
  }
});
