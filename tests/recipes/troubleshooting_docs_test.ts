/** Each symptom in code on docs/troubleshooting.md is a text of the program, and says what to do. */

import assert from "node:assert/strict";
import { systemClock } from "../../handlers/commands/system.ts";
import { DeployCalls } from "../../lib/client/calls.ts";
import { httpsFetch } from "../../lib/client/https_fetch.ts";
import { listenHttps } from "../../lib/testing/https_server.ts";
import { type Authority, type CertificateRequest, createAuthority } from "../../lib/testing/mod.ts";
import { ROOT } from "../checks/shell.ts";

const page = await Deno.readTextFile(new URL("docs/troubleshooting.md", ROOT));

interface Symptom {
  readonly title: string;
  readonly text: string;
}

/** The sections below the third headings. */
const symptoms: readonly Symptom[] = page.split(/^### /m).slice(1).map((section) => {
  const [title = "", ...lines] = section.split("\n");
  return { title, text: lines.join("\n").split(/^## /m)[0]?.trim() ?? "" };
});

async function* sources(folder: URL): AsyncIterable<string> {
  for await (const entry of Deno.readDir(folder)) {
    const child = new URL(entry.name + (entry.isDirectory ? "/" : ""), folder);
    if (entry.isDirectory) yield* sources(child);
    else if (/\.tsx?$/.test(entry.name)) yield await Deno.readTextFile(child);
  }
}

const files: string[] = [];
for (const folder of ["lib/", "handlers/"]) {
  for await (const text of sources(new URL(folder, ROOT))) files.push(text);
}

/** The parts of a symptom between its variable places. A name in quotes is one too. */
function parts(title: string): readonly string[] {
  return title.replace(/^`|`$/g, "").split(/…|'\w+'/).map((part) => part.trim())
    .filter((part) => part !== "");
}

/** True when the parts stand in one file: a message may be put together from up to three texts of it. */
function isInProgram(wanted: readonly string[]): boolean {
  return files.some((file) => wanted.every((part) => isCovered(file, part, 3)));
}

function isCovered(file: string, part: string, pieces: number): boolean {
  if (file.includes(part)) return true;
  if (pieces === 1) return false;
  const words = part.split(" ");
  return words.some((_, at) => {
    const head = words.slice(0, at).join(" ");
    return head.length >= 7 && file.includes(head) &&
      isCovered(file, words.slice(at).join(" "), pieces - 1);
  });
}

Deno.test("each symptom in code is a text of the program", () => {
  const inCode = symptoms.filter(({ title }) => title.startsWith("`"));
  assert.ok(inCode.length >= 30);
  const strangers = inCode.filter(({ title }) => !isInProgram(parts(title)));
  assert.deepEqual(strangers.map(({ title }) => title), []);
});

Deno.test("a text that the program does not have is found out", () => {
  assert(!isInProgram(parts("`Cannot reach the service as the moon is full`")));
  assert(!isInProgram(parts("`Cannot call the service as … the moon is full`")));
});

Deno.test("each symptom says what to do, and stands once", () => {
  const titles = symptoms.map(({ title }) => title);
  assert.deepEqual(titles.filter((title, at) => titles.indexOf(title) !== at), []);
  for (const { title, text } of symptoms) assert.ok(text.length > 40, title);
});

Deno.test("the codes of connections in brackets are those that a client gets", async () => {
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const stranger = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const codeAt = async (from: Authority, request: CertificateRequest) => {
    const { certPem: cert, keyPem: key } = await from.issue(request);
    const server = await listenHttps(() => Promise.resolve(new Response()), { cert, key });
    try {
      return await codeOf(authority.caPem, server.url);
    } finally {
      await server.close();
    }
  };
  const ipAddresses = ["127.0.0.1"];
  const codes = [
    await codeOf(authority.caPem, "https://127.0.0.1:1"),
    await codeAt(stranger, { ipAddresses }),
    await codeAt(authority, { dnsNames: ["other"] }),
    await codeAt(authority, { ipAddresses, notAfterMs: Date.now() - 1_000 }),
  ];
  for (const code of codes) assert(page.includes(`\`${code}\``), code);
  assert.deepEqual(codes, [
    "ECONNREFUSED",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    // An expired certificate is told in the same words as a stranger's: the page says so.
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  ]);
});

/** What a client says in brackets of a connection that failed. */
async function codeOf(caPem: string, url: string): Promise<string> {
  const calls = new DeployCalls({
    url,
    group: "orders",
    fetch: httpsFetch(caPem),
    token: () => "t",
    clock: systemClock,
  });
  const { answer } = await calls.observe(10_000);
  return answer.type === "no_answer" ? answer.code : answer.type;
}
