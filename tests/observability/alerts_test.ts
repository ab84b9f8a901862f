import assert from "node:assert/strict";
import { ROOT } from "../../deploy/commands.ts";
import { parse } from "yaml";
import { z } from "zod";
import { linksIn, readDocument } from "../docs/markdown.ts";
import { readRules } from "./dashboards.ts";
import { findPromtool } from "./promtool.ts";

const promtool = await findPromtool();
const RULES = "deploy/alerts/holdfast.yaml";
const PLAYED = "tests/observability/rules_test.yaml";

/** What each alert of the design is called. */
const WANTED = {
  "no leader": "HoldfastNoLeader",
  "leader not renewing": "HoldfastLeaderNotRenewing",
  "grants refused as unstable for long": "HoldfastGrantsUnstable",
  "lease age over 30 minutes": "HoldfastLeaseTooOld",
  "review failures": "HoldfastReviewsFail",
  "clock offset": "HoldfastClockOffset",
  "certificate near expiry": "HoldfastCertificateExpires",
} as const;

async function play(...args: readonly string[]) {
  assert.ok(promtool !== null);
  const { success, stdout, stderr } = await new Deno.Command(promtool, {
    args: [...args],
    cwd: ROOT,
  }).output();
  const decoder = new TextDecoder();
  return { success, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

Deno.test({
  name: "promtool takes the rules, and each alert is raised by what it is for and by nothing else",
  ignore: promtool === null,
  async fn() {
    const checked = await play("check", "rules", RULES);
    assert.ok(checked.success, checked.output);
    assert.match(checked.output, new RegExp(`${(await readRules()).length} rules found`));
    const played = await play("test", "rules", PLAYED);
    assert.ok(played.success, played.output);
  },
});

Deno.test({
  name: "promtool refuses planted faults: a rule without a query, and an alert that is not raised",
  ignore: promtool === null,
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "rules-" });
    try {
      const rules = await Deno.readTextFile(`${ROOT}${RULES}`);
      await Deno.writeTextFile(`${folder}/broken.yaml`, rules.replace("< 3 * 86400", "< ("));
      assert.ok(!(await play("check", "rules", `${folder}/broken.yaml`)).success);
      // A lease of half an hour is too old, and one of four hours would be as well: nobody is told.
      await Deno.writeTextFile(`${folder}/weak.yaml`, rules.replace("> 1800", "> 18000"));
      const played = (await Deno.readTextFile(`${ROOT}${PLAYED}`))
        .replace("../../deploy/alerts/holdfast.yaml", "weak.yaml");
      await Deno.writeTextFile(`${folder}/played.yaml`, played);
      const { success, output } = await play("test", "rules", `${folder}/played.yaml`);
      assert.ok(!success && output.includes("HoldfastLeaseTooOld"), output);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

const playedForm = z.looseObject({
  tests: z.array(z.looseObject({
    alert_rule_test: z.array(z.looseObject({
      alertname: z.string(),
      exp_alerts: z.array(z.unknown()).optional(),
    })),
  })),
});

Deno.test("there is an alert for each thing that the design names, and each is played both raised and quiet", async () => {
  const names = (await readRules()).map(({ alert }) => alert);
  assert.deepEqual(Object.values(WANTED).filter((name) => !names.includes(name)), []);
  assert.equal(new Set(names).size, names.length);
  const text = await Deno.readTextFile(`${ROOT}${PLAYED}`);
  const played = playedForm.parse(parse(text)).tests.flatMap((test) => test.alert_rule_test);
  for (const name of names) {
    const own = played.filter(({ alertname }) => alertname === name);
    const raised = own.filter(({ exp_alerts }) => (exp_alerts ?? []).length > 0);
    assert.ok(raised.length > 0 && raised.length < own.length, name);
  }
  assert.deepEqual(played.filter(({ alertname }) => !names.includes(alertname)), []);
});

Deno.test("each alert has its runbook: what it means, where to look, what to do, and how to break the glass", async () => {
  const pages = await Array.fromAsync(Deno.readDir(`${ROOT}docs/runbooks`), ({ name }) => name);
  const rules = await readRules();
  assert.deepEqual(pages.sort(), rules.map(({ alert }) => `${alert}.md`).sort());
  for (const { alert, annotations } of rules) {
    assert.equal(annotations.runbook_url, `docs/runbooks/${alert}.md`);
    const page = await readDocument(annotations.runbook_url);
    const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(headings, [alert, "What it means", "Look", "Do", "Break glass"], alert);
  }
});

Deno.test("the reference of the alerts tells of each, with its severity, its time and its runbook", async () => {
  const page = await readDocument("docs/alerts.md");
  const linked = linksIn(page).map(({ target }) => target);
  for (const rule of await readRules()) {
    const row = page.split("\n").find((line) => line.startsWith(`| [${rule.alert}]`)) ?? "";
    const cells = row.split("|").map((cell) => cell.trim());
    assert.deepEqual([cells[2], cells[3]], [rule.labels.severity, rule.for], rule.alert);
    assert.ok(linked.includes(`runbooks/${rule.alert}.md`), rule.alert);
  }
  const told = [...page.matchAll(/^\| \[(Holdfast\w+)\]/gm)].map(([, name]) => name);
  assert.deepEqual(told, (await readRules()).map(({ alert }) => alert));
});
