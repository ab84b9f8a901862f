/**
 * What a test needs to run against a cluster that is not there: an API server in memory, a clock that stands still, a
 * seeded source of randomness, and a certificate authority.
 *
 * @module
 */

export * from "./authority.ts";
export * from "./test_clock.ts";
