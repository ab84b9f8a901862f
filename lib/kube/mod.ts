/**
 * Calls to a Kubernetes cluster: one interface, its errors, and the client behind it.
 *
 * @module
 */

export * from "./api.ts";
export * from "./errors.ts";
export * from "./resources.ts";
export { type Credentials, NO_CREDENTIALS, staticToken } from "./credentials.ts";
export type { CallReport, SendRequest } from "./exchange.ts";
export { HttpApi, type HttpApiParts } from "./http_api.ts";
export { compareVersions, isRewound } from "./versions.ts";
