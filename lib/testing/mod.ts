/**
 * What a test needs to run against a cluster that is not there: an API server in memory and a client of it, a clock that
 * stands still, a seeded source of randomness, a machine that ends nothing, and a certificate authority.
 *
 * @module
 */

export { ApiError } from "./api_server/api_error.ts";
export type { Cause, StatusDetails } from "./api_server/api_error.ts";
export type { StoreSnapshot } from "./api_server/store.ts";
export * from "./authority.ts";
export type { Call, CallFilter, CallLog, LoggedCall } from "./calls.ts";
export * from "./client.ts";
export * from "./entropy.ts";
export * from "./fake_cluster.ts";
export { ConnectionLostError } from "./faults.ts";
export type { Fault, FaultBook, FaultHandle, FaultRule } from "./faults.ts";
export type { HttpsOptions, RunningServer } from "./https_server.ts";
export * from "./test_clock.ts";
export * from "./test_system.ts";
