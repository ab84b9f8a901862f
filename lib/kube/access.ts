/**
 * What it takes to reach a cluster, however that was found out.
 *
 * @module
 */

import type { ClientCertificate, ConnectionOptions } from "./connection.ts";
import type { Credentials } from "./credentials.ts";

/** Looks up a variable of the environment. */
export type Environment = (name: string) => string | undefined;

/** How a cluster is reached. */
export interface ClusterAccess {
  /** Where the access is from (kubernetes-plugin 8). */
  readonly mode: "kubeconfig" | "in_cluster";
  /** Where the API server is. */
  readonly baseUrl: string;
  /** The namespace of the credentials. */
  readonly namespace: string;
  readonly credentials: Credentials;
  readonly connection: ConnectionOptions;
  /** True when credentials come from a command that this program runs: it then needs the permission to. */
  readonly runsCommands: boolean;
  /** Tells of another client certificate, for credentials that change theirs. */
  onClientCertificate?(changed: (certificate: ClientCertificate) => void): void;
}
