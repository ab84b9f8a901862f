/**
 * Why the plugin cannot start, besides a wrong configuration and a cluster that cannot be found.
 *
 * @module
 */

/** The cluster is required, and its API server does not answer. */
export class ClusterUnavailableError extends Error {
  override readonly name = "ClusterUnavailableError";
  /** The class of the error, or `timeout`. */
  readonly reason: string;

  constructor(mode: string, reason: string) {
    super(
      `Cannot start as the API server of the cluster (${mode}) does not answer (${reason}): check its address and the credentials, or set 'kubernetes.required' to false`,
    );
    this.reason = reason;
  }
}

/** There is nothing that client-node's configuration could be made of. */
export class NoKubeConfigError extends Error {
  override readonly name = "NoKubeConfigError";

  constructor(mode: string) {
    super(
      `Cannot give a KubeConfig in mode '${mode}': the cluster must have been found through a kubeconfig or a pod's credentials`,
    );
  }
}
