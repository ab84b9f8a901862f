import assert from "node:assert/strict";
import { DatabaseProgramsError, ensureMariaDb, REQUIRED_VARIABLE } from "./mariadb_programs.ts";

Deno.test("without MariaDB and without packages the database tests are skipped, or are an error where they are required", async () => {
  const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
  try {
    const environment = { HOME: folder, PATH: folder };
    const lines: string[] = [];
    const nothing = {
      environment,
      system: folder,
      onSkipped: (line: string) => void lines.push(line),
    };
    assert.equal(await ensureMariaDb(nothing), null);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /^Database tests are skipped: .*required makes this an error/);
    const required = { ...environment, [REQUIRED_VARIABLE]: "required" };
    await assert.rejects(
      ensureMariaDb({ ...nothing, environment: required }),
      (error) => error instanceof DatabaseProgramsError && /apt-get/.test(error.message),
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
