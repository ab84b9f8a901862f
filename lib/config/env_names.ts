/**
 * The environment variables that the program reads. The permission set of `deno.json` and the reference page hold this
 * very list, so nothing else of the environment is within reach.
 *
 * @module
 */

/** A variable, or all that begin with a prefix. */
export interface EnvironmentName {
  /** The name; a `*` at its end stands for any ending. */
  readonly name: string;
  /** What it is read for, as a clause without a full stop. */
  readonly purpose: string;
}

/** Every variable that is read, sorted by what it is for. */
export const environmentNames: readonly EnvironmentName[] = [
  { name: "HOLDFAST__*", purpose: "any key of the configuration" },
  { name: "AUTUMN_*", purpose: "the reference plugin's names, and the profile" },
  { name: "BLOODRAVEN_*", purpose: "the reference operator's names" },
  { name: "HOLDFAST_URL", purpose: "a client: the base URL of the service" },
  {
    name: "HOLDFAST_CA_FILE",
    purpose: "a client: the file with the authority of the service's certificate",
  },
  { name: "HOLDFAST_TOKEN_FILE", purpose: "a client: the file with its service account token" },
  { name: "HOLDFAST_GROUP", purpose: "a client: the group" },
  { name: "HOLDFAST_INSTANCE", purpose: "a client: the database that is deployed to" },
  { name: "POD_*", purpose: "the pod's name, namespace, UID, address and service account" },
  { name: "NODE_NAME", purpose: "the node that the pod runs on" },
  { name: "HOSTNAME", purpose: "the pod's name where `POD_NAME` is not set" },
  { name: "KUBERNETES_SERVICE_HOST", purpose: "the API server, inside a pod" },
  { name: "KUBERNETES_SERVICE_PORT", purpose: "the API server's port, inside a pod" },
  {
    name: "KUBERNETES_SERVICE_PORT_HTTPS",
    purpose: "the same, where `KUBERNETES_SERVICE_PORT` is not set",
  },
  { name: "KUBECONFIG", purpose: "the kubeconfig files, outside a pod" },
  { name: "HOME", purpose: "the place of `.kube/config` where `KUBECONFIG` is not set" },
  { name: "USERPROFILE", purpose: "the same on Windows" },
  { name: "PATH", purpose: "the folders in which `run` looks for its command" },
  { name: "HTTPS_PROXY", purpose: "the proxy to an API server that a kubeconfig names" },
  { name: "https_proxy", purpose: "the same in lower case" },
  { name: "NO_PROXY", purpose: "hosts that need no proxy; the API server of the pod is added" },
  { name: "no_proxy", purpose: "the same in lower case, read where `NO_PROXY` is not set" },
];
