import assert from "node:assert/strict";
import fc from "fast-check";
import { createLogger, type LoggerOptions } from "../../lib/host/log.ts";
import type { Logger } from "../../lib/runtime/log.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";

/** The lines that `use` writes. */
function linesOf(use: (logger: Logger) => void, options: Partial<LoggerOptions> = {}): string[] {
  const lines: string[] = [];
  use(createLogger({ write: (line) => lines.push(line), clock: new TestClock(), ...options }));
  return lines;
}

Deno.test("a JSON line has time, level and message, and then the fields in their order", () => {
  const lines = linesOf((logger) =>
    logger.info("deploy api", {
      handler: "grant",
      group: "",
      status: 201,
      duration_ms: 3,
      leads: true,
      nothing: null,
      list: ["a", "b"],
    })
  );
  assert.deepEqual(lines, [
    '{"time":"2026-01-01T00:00:00.000Z","level":"INFO","msg":"deploy api","handler":"grant","group":"",' +
    '"status":201,"duration_ms":3,"leads":true,"nothing":null,"list":["a","b"]}\n',
  ]);
});

Deno.test("the level decides what is written, and is in capitals", () => {
  const use = (logger: Logger) => {
    logger.debug("1");
    logger.info("2");
    logger.warn("3");
    logger.error("4");
  };
  const levels = (level: "debug" | "info" | "warn" | "error") =>
    linesOf(use, { level }).map((line) => /"level":"(\w+)"/.exec(line)?.[1]);
  assert.deepEqual(levels("debug"), ["DEBUG", "INFO", "WARN", "ERROR"]);
  assert.deepEqual(levels("info"), ["INFO", "WARN", "ERROR"]);
  assert.deepEqual(levels("warn"), ["WARN", "ERROR"]);
  assert.deepEqual(levels("error"), ["ERROR"]);
  assert.equal(linesOf(use).length, 3);
});

Deno.test("the text format is one readable line, with quotes where they are needed", () => {
  const lines = linesOf((logger) => {
    logger.info("listening", { addr: "127.0.0.1:8443", count: 1, list: ["a"], none: null });
    logger.warn("refused", { reason: "two words", empty: "", forged: "a\nb" });
  }, { format: "text" });
  assert.deepEqual(lines, [
    '2026-01-01T00:00:00.000Z INFO  listening addr=127.0.0.1:8443 count=1 list=["a"] none=null\n',
    '2026-01-01T00:00:00.000Z WARN  refused reason="two words" empty="" forged="a\\nb"\n',
  ]);
});

Deno.test("a field cannot take the place of the time, the level or the message", () => {
  const [line = ""] = linesOf((logger) =>
    logger.info("real", { msg: "forged", level: "x", time: 1, a: 1 })
  );
  assert.equal(line, '{"time":"2026-01-01T00:00:00.000Z","level":"INFO","msg":"real","a":1}\n');
});

Deno.test("tokens and the user part of a URL do not get through, wherever they stand", () => {
  const secret = "s3cr3t";
  for (const format of ["json", "text"] as const) {
    const [line = ""] = linesOf((logger) =>
      logger.error(`sent Bearer ${secret}`, {
        url: `https://user:${secret}@host/path`,
        list: [`Authorization: Bearer ${secret}`],
      }), { format });
    assert(!line.includes(secret), line);
    assert(line.includes("host/path"), line);
  }
});

Deno.test("any text gives exactly one line, and a JSON line reads back", () => {
  const fields = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.double(), fc.boolean()));
  fc.assert(fc.property(fc.string({ unit: "binary" }), fields, (message, fields) => {
    const [json = "", ...more] = linesOf((logger) => logger.info(message, fields));
    assert.deepEqual(more, []);
    assert.equal(JSON.parse(json).level, "INFO");
    const [text = ""] = linesOf((logger) => logger.info(message, fields), { format: "text" });
    assert.match(text, /^\P{Cc}*\n$/u);
  }));
});

Deno.test("a writer or a clock that throws is no fault of whoever logs", () => {
  linesOf((logger) => logger.info("lost"), {
    write: () => {
      throw new Error("disk full");
    },
  });
  assert.deepEqual(linesOf((logger) => logger.info("lost"), { clock: { wall: () => NaN } }), []);
});
