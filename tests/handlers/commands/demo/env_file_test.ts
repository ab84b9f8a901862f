import assert from "node:assert/strict";
import {
  type DemoVariables,
  EnvFile,
  renderDotenv,
} from "../../../../handlers/commands/demo/env_file.ts";
import { RefusalError } from "../../../../handlers/commands/options.ts";
import { parseDotenv } from "../../../../lib/config/dotenv.ts";
import { seededEntropy } from "../../../../lib/testing/mod.ts";

const entropy = seededEntropy(1);

function variables(folder = "/tmp/demo"): DemoVariables {
  return {
    HOLDFAST_URL: "https://127.0.0.1:8443",
    HOLDFAST_CA_FILE: `${folder}/ca.crt`,
    HOLDFAST_TOKEN_FILE: `${folder}/orders-app.token`,
    HOLDFAST_GROUP: "orders",
    HOLDFAST_INSTANCE: "orders-app",
    HOLDFAST_STATUS_URL: "http://127.0.0.1:8082/",
    DEMO_KUBECONFIG: `${folder}/kubeconfig`,
  };
}

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const refusal = (pattern: RegExp) => (error: unknown) =>
  error instanceof RefusalError && pattern.test(error.message);

Deno.test("plain values stand without quotes", () => {
  assert.equal(
    renderDotenv(variables()).split("\n")[1],
    "HOLDFAST_CA_FILE=/tmp/demo/ca.crt",
  );
});

for (const folder of ["/tmp/a b", `/tmp/"q"'s`, "/tmp/$HOME `x` \\n #", "/tmp/ö"]) {
  Deno.test(`a reader of dotenv files and a shell find the same values in ${folder}`, async () => {
    const text = renderDotenv(variables(folder));
    assert.deepEqual(Object.fromEntries(parseDotenv("demo.env", text)), { ...variables(folder) });
    const { stdout } = await new Deno.Command("bash", {
      args: ["-c", `${text}\nprintf %s "$DEMO_KUBECONFIG"`],
    }).output();
    assert.equal(new TextDecoder().decode(stdout), `${folder}/kubeconfig`);
  });
}

Deno.test("a file of an earlier demo goes at the start, and the new one comes whole", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/demo.env`;
    await Deno.writeTextFile(path, "HOLDFAST_URL=https://gone\n");
    const file = await EnvFile.prepare(path, entropy);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
    await file.write(variables());
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["demo.env"]);
    assert.equal(await Deno.readTextFile(path), renderDotenv(variables()));
  });
});

Deno.test("a folder in the place of the file is refused and left alone", async () => {
  await inFolder(async (folder) => {
    await assert.rejects(
      EnvFile.prepare(folder, entropy),
      refusal(/it is a folder: let --env-file/),
    );
    assert.ok((await Deno.stat(folder)).isDirectory);
  });
});

Deno.test("a file in a missing folder, or below a file, is refused", async () => {
  await inFolder(async (folder) => {
    await assert.rejects(
      EnvFile.prepare(`${folder}/missing/demo.env`, entropy),
      refusal(/the folder .*\/missing does not exist/),
    );
    await Deno.writeTextFile(`${folder}/file`, "");
    await assert.rejects(
      EnvFile.prepare(`${folder}/file/demo.env`, entropy),
      refusal(/takes no file of this user \(\w+\)/),
    );
  });
});

Deno.test("a folder that goes while the story is played is told, and nothing unfinished stays", async () => {
  await inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/sub`);
    const file = await EnvFile.prepare(`${folder}/sub/demo.env`, entropy);
    await Deno.remove(`${folder}/sub`);
    await assert.rejects(
      file.write(variables()),
      refusal(/the file system refuses it \(NotFound\)/),
    );
    const other = await EnvFile.prepare(`${folder}/demo.env`, entropy);
    await Deno.mkdir(`${folder}/demo.env`);
    await assert.rejects(other.write(variables()), refusal(/the file system refuses it/));
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["demo.env"]);
  });
});
