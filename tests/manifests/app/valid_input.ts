/**
 * Applications that the manifests can be made for.
 *
 * @module
 */

import fc from "fast-check";
import { DOWNWARD_NAMES } from "../../../lib/manifests/app/environment.ts";
import { type AppInput, MAX_GRACE_SECONDS } from "../../../lib/manifests/mod.ts";

const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,20}[a-z0-9])?$/);
const subdomain = fc.array(label, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("."));
const path = fc.stringMatching(/^\/[a-z/._~-]{0,12}$/);
const seconds = fc.oneof(
  fc.integer({ min: 0, max: 600 }),
  fc.constantFrom(0, 2 ** 31, MAX_GRACE_SECONDS),
);

/** Any valid input, its extremes included. */
export const validInput: fc.Arbitrary<AppInput> = fc.record({
  name: label,
  image: fc.constantFrom(
    "web",
    "registry.example:5000/shop/web:1.2",
    `web@sha256:${"a".repeat(64)}`,
  ),
  namespace: fc.constant("shop"),
  port: fc.oneof(fc.integer({ min: 1, max: 65_535 }), fc.constantFrom(1, 65_535)),
  replicas: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constant(2_147_483_647)),
  role: fc.constantFrom(null, "combined" as const, "web" as const, "worker" as const),
  livePath: path,
  readyPath: path,
  startupPath: path,
  preStopSeconds: seconds,
  prestopGraceSeconds: seconds,
  shutdownTimeoutSeconds: seconds,
  bufferSeconds: seconds,
  leaseName: fc.option(subdomain),
  configMaps: fc.uniqueArray(subdomain, { maxLength: 3 }),
  events: fc.boolean(),
  labelLeader: fc.boolean(),
  apiAccess: fc.boolean(),
  env: fc.dictionary(
    fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,12}$/).filter((name) =>
      !DOWNWARD_NAMES.has(name)
    ),
    fc.string({ unit: "grapheme" }),
    { maxKeys: 5 },
  ),
  readOnlyRootFilesystem: fc.boolean(),
});
