/**
 * A client of the deployment API: takes leases, keeps them alive, and stops work before its authority ends.
 *
 * It runs under Deno, Node 20 and newer, and in principle Bun. A {@linkcode HoldfastClient} itself uses web APIs alone.
 *
 * @module
 */

export type { GroupView, Holder } from "./answers.ts";
export { type Authority } from "./authority.ts";
export type { Fetch, LeaseKind } from "./calls.ts";
export * from "./client.ts";
export type { DeploymentAuthority, Loss } from "./deployment.ts";
export * from "./errors.ts";
export { checkedAuthorities, httpsFetch } from "./https_fetch.ts";
export type { LeaseTiming, LossReason, OwnDeadline } from "./rules.ts";
export * from "./settings.ts";
