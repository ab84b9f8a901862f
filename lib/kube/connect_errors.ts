/**
 * Why no connection to a cluster can be made.
 *
 * Unlike the errors of calls, these name files and settings of this machine: they are for whoever starts the program.
 *
 * @module
 */

/** There is no cluster: no kubeconfig, and not in a pod (kubernetes-plugin 9, class `no_cluster`). */
export class NoClusterError extends Error {
  override readonly name = "NoClusterError";
}

/**
 * A kubeconfig, a credential or a certificate is there and cannot be used (kubernetes-plugin 8 and 9, class `config`): so
 * this is not "no cluster". The message names the file and what would be right, and holds no part of its content.
 */
export class ClusterConfigError extends Error {
  override readonly name = "ClusterConfigError";
}
