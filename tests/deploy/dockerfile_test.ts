import assert from "node:assert/strict";
import { COMMIT } from "../../deploy/build_source.ts";
import { ROOT } from "../../deploy/commands.ts";
import { loadConfig } from "../../lib/config/layers.ts";
import { dockerfileFaults, instructionsIn } from "./dockerfile.ts";

const text = await Deno.readTextFile(`${ROOT}deploy/Dockerfile`);
const instructions = instructionsIn(text);
const textsOf = (name: string) =>
  instructions.filter((instruction) => instruction.name === name).map(({ text }) => text);

Deno.test("the Dockerfile pins what it builds on, starts no shell, checks no health, and gives the program to nobody's user", () => {
  assert.deepEqual(dockerfileFaults(text), []);
});

Deno.test("planted faults are seen", () => {
  const digest = `sha256:${"0".repeat(64)}`;
  const planted: readonly (readonly [string, string, RegExp])[] = [
    ["@sha256:2014dc", "-alpine #", /^an image is not pinned/],
    ["USER 65534:65534", "USER nonroot", /^its user is nonroot/],
    ["USER 65534:65534", "", /^its user is that of the base image/],
    [`CMD ["serve"]`, "CMD serve", /^CMD starts a shell: serve/],
    [`RUN ["deno", "task", "compile"]`, "RUN deno task \\\n  compile", /^RUN starts a shell/],
    [`CMD ["serve"]`, 'HEALTHCHECK CMD ["holdfast"]', /HEALTHCHECK/],
    ["EXPOSE 8080", "VOLUME /data\nEXPOSE 8080", /^it asks for a volume/],
    ["WORKDIR /\n", 'RUN ["true"]\n', /^the image itself runs something/],
    ["COPY lib ./lib", "COPY . .", /^it copies all/],
    ["COPY lib ./lib", "ADD lib ./lib", /^it uses ADD/],
  ];
  for (const [wanted, instead, fault] of planted) {
    assert.ok(text.includes(wanted), wanted);
    const faults = dockerfileFaults(text.replace(wanted, instead));
    assert.ok(faults.some((found) => fault.test(found)), `${fault} in ${faults.join("; ")}`);
  }
  assert.ok(dockerfileFaults(`FROM a:1@${digest}`).includes("it has no stage that builds"));
});

Deno.test("the build stage has the Deno that the tests run with, compiles for the machine that is asked for, and is told the commit", () => {
  const [build = "", image = ""] = textsOf("FROM");
  const [, version] = /denoland\/deno:(\S+)@/.exec(build) ?? [];
  assert.equal(version, Deno.version.deno);
  assert.match(build, /^--platform=\$BUILDPLATFORM /);
  assert.match(image, /\/distroless\/cc-debian12:nonroot@/);
  for (const name of [COMMIT, "TARGETARCH"]) assert.ok(textsOf("ARG").includes(name), name);
  assert.deepEqual(textsOf("RUN").at(-1), '["deno", "task", "compile"]');
});

Deno.test("what is copied into the build exists and is let through to the builder", async () => {
  const ignored = await Deno.readTextFile(`${ROOT}deploy/Dockerfile.dockerignore`);
  const sent = new Set(
    ignored.split("\n").flatMap((line) => line.startsWith("!") ? [line.slice(1)] : []),
  );
  assert.ok(ignored.split("\n").includes("*"));
  const own = textsOf("COPY").filter((text) => !text.startsWith("--from"))
    .flatMap((text) => text.split(/\s+/).slice(0, -1));
  assert.deepEqual([...own].sort(), [...sent].sort());
  for (const path of own) await Deno.stat(`${ROOT}${path}`);
});

Deno.test("the image exposes the ports that the service listens on, and starts it", () => {
  const { config } = loadConfig({ env: {}, readTextFile: () => undefined, options: [] });
  const ports = Object.values(config.listen).map(({ port }) => String(port));
  assert.deepEqual(textsOf("EXPOSE").flatMap((text) => text.split(" ")).sort(), ports.sort());
  assert.deepEqual(textsOf("ENTRYPOINT"), ['["/usr/local/bin/holdfast"]']);
  assert.deepEqual(textsOf("CMD"), ['["serve"]']);
});
