/**
 * What an application needs in its cluster, generated from its configuration.
 *
 * @module
 */

export { type AppInput, appInputOf, type ConfiguredInput } from "./app/input.ts";
export * from "./app/manifests.ts";
export { ManifestError } from "./demand.ts";
export { type GraceParts, gracePeriodSeconds, MAX_GRACE_SECONDS } from "./grace_period.ts";
export type { ManifestMetadata } from "./metadata.ts";
export * from "./rbac.ts";
export * from "./yaml.ts";
