import assert from "node:assert/strict";
import fc from "fast-check";
import { BackupError, cutoffs, type MysqlBackup } from "../../lib/auxiliary/backups.ts";

interface Backup {
  readonly profile?: string;
  readonly phase?: string | null;
  readonly completionTime?: string | null;
  readonly deletionTimestamp?: string;
}

function backup(
  { profile = "daily", phase = "Succeeded", completionTime, ...meta }: Backup,
): MysqlBackup {
  const labels: Record<string, string> = profile === ""
    ? {}
    : { "shipstream.io/backup-profile": profile };
  return { metadata: { labels, ...meta }, status: { phase, completionTime } };
}

Deno.test("the cut-off of a profile is its oldest completion, by the instant and not by the text", () => {
  const found = cutoffs([
    backup({ completionTime: "2026-01-02T00:00:00Z" }),
    backup({ completionTime: "2026-01-02T00:30:00+01:00" }),
    backup({ completionTime: "2026-01-03T00:00:00Z" }),
    backup({ profile: "hourly", completionTime: "2026-01-05T00:00:00.750Z" }),
  ]);
  assert.deepEqual([...found], [
    ["daily", "2026-01-01T23:30:00Z"],
    ["hourly", "2026-01-05T00:00:00Z"],
  ]);
});

Deno.test("what did not succeed, is not done, is being deleted or has no profile does not count", () => {
  const early = "2020-01-01T00:00:00Z";
  const found = cutoffs([
    ...["Pending", "Running", "Failed", "", null].map((phase) =>
      backup({ phase, completionTime: early })
    ),
    backup({ completionTime: null }),
    backup({ completionTime: "" }),
    backup({ completionTime: early, deletionTimestamp: "2026-01-01T00:00:00Z" }),
    backup({ profile: "", completionTime: early }),
    { metadata: { labels: { "shipstream.io/backup-profile": "daily" } } },
    backup({ completionTime: "2026-01-02T00:00:00Z" }),
  ]);
  assert.deepEqual([...found], [["daily", "2026-01-02T00:00:00Z"]]);
});

Deno.test("no backup gives no cut-off", () => {
  assert.equal(cutoffs([]).size, 0);
});

Deno.test("a time that cannot be read gives no cut-off, since to leave it out would name a later one", () => {
  const good = backup({ completionTime: "2026-01-02T00:00:00Z" });
  assert.throws(() => cutoffs([good, backup({ completionTime: "long ago" })]), BackupError);
  // One that does not count may be as it likes.
  const failed = backup({ completionTime: "long ago", phase: "Failed" });
  assert.equal(cutoffs([good, failed]).get("daily"), "2026-01-02T00:00:00Z");
});

Deno.test("no backup that counts is older than the cut-off, and one is as old", () => {
  const time = fc.date({ min: new Date(0), max: new Date("2100-01-01"), noInvalidDate: true });
  fc.assert(fc.property(fc.array(time, { minLength: 1 }), (times) => {
    const found = cutoffs(times.map((at) => backup({ completionTime: at.toISOString() })));
    const oldest = Math.min(...times.map(Number));
    assert.equal(Date.parse(found.get("daily") ?? ""), Math.floor(oldest / 1000) * 1000);
  }));
});
