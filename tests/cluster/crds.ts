/**
 * Installs the custom resource definitions of `deploy/crds`.
 *
 * @module
 */

import { readDefinitions } from "../../handlers/commands/demo/crds.ts";
import { pause } from "./keeper.ts";
import { member, mustSucceed, type RawClient } from "./raw_client.ts";

const COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/**
 * Creates the definitions, or replaces those that are there, and returns when the API server serves each: it refuses a
 * kind for a moment after its definition was written.
 */
export async function applyCrds(admin: RawClient, crds?: readonly unknown[]): Promise<void> {
  for (const crd of crds ?? readDefinitions()) await applyCrd(admin, crd);
}

async function applyCrd(admin: RawClient, crd: unknown): Promise<void> {
  const name = String(member(crd, "metadata", "name"));
  const found = await admin("GET", `${COLLECTION}/${name}`);
  if (found.status === 404) {
    mustSucceed(await admin("POST", COLLECTION, { body: crd }), `create the definition ${name}`);
  } else {
    mustSucceed(found, `read the definition ${name}`);
    const body = structuredClone(crd);
    Object.assign(Object(member(body, "metadata")), {
      resourceVersion: member(found.body, "metadata", "resourceVersion"),
    });
    mustSucceed(
      await admin("PUT", `${COLLECTION}/${name}`, { body }),
      `replace the definition ${name}`,
    );
  }
  const group = String(member(crd, "spec", "group"));
  const version = String(member(crd, "spec", "versions", 0, "name"));
  const plural = String(member(crd, "spec", "names", "plural"));
  const fields = member(crd, "spec", "versions", 0, "selectableFields");
  const field = member(fields, 0, "jsonPath");
  const query = typeof field === "string"
    ? `?fieldSelector=${encodeURIComponent(`${field.slice(1)}=x`)}`
    : "";
  for (let attempt = 0; attempt < 400; attempt++) {
    const answer = await admin("GET", `/apis/${group}/${version}/${plural}${query}`);
    if (answer.status === 200) return;
    await pause(25);
  }
  throw new Error(`Cannot use the definition ${name}: the API server does not serve it after 10 s`);
}
