/**
 * Calls to a Kubernetes cluster: one interface, its errors, and the client behind it.
 *
 * @module
 */

export * from "./api.ts";
export { ApiDecorator } from "./api_decorator.ts";
export * from "./connect_errors.ts";
export * from "./errors.ts";
export * from "./resources.ts";
export type { ClusterAccess, Environment } from "./access.ts";
export {
  type Client,
  type ClientOptions,
  connect,
  type ConnectedClient,
  type ConnectOptions,
} from "./connect.ts";
export type { ConnectionFault } from "./connection_faults.ts";
export {
  type ClientCertificate,
  Connection,
  type ConnectionOptions,
  noProxyWith,
  type PemSource,
} from "./connection.ts";
export {
  type Credentials,
  NO_CREDENTIALS,
  type ReadTextFile,
  staticToken,
  TokenFile,
  type TokenFileParts,
} from "./credentials.ts";
export type { CallReport, SendRequest } from "./exchange.ts";
export { HttpApi, type HttpApiParts } from "./http_api.ts";
export { inClusterHost } from "./in_cluster.ts";
export { scrub } from "./scrub.ts";
export { compareVersions, isRewound } from "./versions.ts";
