/**
 * The environment variables of an application's container.
 *
 * @module
 */

import type { ProcessRole } from "../../config/schema.ts";

/** What the pod tells of itself, by the variable that `PodInfo` reads (kubernetes-plugin 3). */
const DOWNWARD_FIELDS = {
  POD_NAME: "metadata.name",
  POD_NAMESPACE: "metadata.namespace",
  POD_UID: "metadata.uid",
  NODE_NAME: "spec.nodeName",
  POD_IP: "status.podIP",
  POD_SERVICE_ACCOUNT: "spec.serviceAccountName",
} as const;

/** The names that an application may not give a value of its own. */
export const DOWNWARD_NAMES: ReadonlySet<string> = new Set(Object.keys(DOWNWARD_FIELDS));

/** What the variables depend on. */
export interface EnvironmentInput {
  /** Where the application listens. */
  readonly port: number;
  /** `null` says nothing of it. */
  readonly role: ProcessRole | null;
  /** Further variables; they win over the generated ones. */
  readonly env: Readonly<Record<string, string>>;
}

/** A variable of a container: with a value, or with one that the pod fills in. */
export type ContainerVariable =
  | { readonly name: string; readonly value: string }
  | {
    readonly name: string;
    readonly valueFrom: { readonly fieldRef: { readonly fieldPath: string } };
  };

/** The variables: those that the pod fills in, then all others, sorted by name. */
export function containerEnvironment(
  { port, role, env }: EnvironmentInput,
): readonly ContainerVariable[] {
  const plain: Readonly<Record<string, string>> = {
    // A host listens on the loopback address unless it is told otherwise, and no probe would reach it.
    AUTUMN_SERVER__HOST: "0.0.0.0",
    AUTUMN_SERVER__PORT: String(port),
    ...(role === null ? {} : { AUTUMN_ROLE: role }),
    ...env,
  };
  return [
    ...Object.entries(DOWNWARD_FIELDS).map(([name, fieldPath]) => ({
      name,
      valueFrom: { fieldRef: { fieldPath } },
    })),
    ...Object.keys(plain).sort().map((name) => ({ name, value: plain[name] ?? "" })),
  ];
}
