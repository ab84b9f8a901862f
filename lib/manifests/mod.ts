/**
 * What an application needs in its cluster, generated from its configuration.
 *
 * @module
 */

export * from "./rbac.ts";
