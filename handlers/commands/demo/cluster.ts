/**
 * The demo's cluster: an API server in memory behind HTTPS, with RBAC, and the objects of the story in it.
 *
 * @module
 */

import { connect, type KubeApi } from "../../../lib/kube/mod.ts";
import { SERVICE_ACCOUNTS, TOKEN_REQUESTS } from "../../../lib/kube/resources.ts";
import type { Clock } from "../../../lib/runtime/clock.ts";
import type { Entropy } from "../../../lib/runtime/entropy.ts";
import { type Authority, FakeCluster } from "../../../lib/testing/mod.ts";
import { type Account, GROUP, manifests } from "./cast.ts";
import { readDefinitions } from "./crds.ts";
import { type DemoFolder, kubeconfig } from "./folder.ts";
import { type DemoPorts, HOST, listenError } from "./ports.ts";

/** How long tokens and certificates live: nobody leaves a demo running for longer. */
export const VALID_DAYS = 30;

const VALID_SECONDS = VALID_DAYS * 86_400;

/** What the cluster is made of. */
export interface DemoClusterParts {
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** Signs the server's certificate. */
  readonly authority: Authority;
  /** Gets the administrator's kubeconfig. */
  readonly folder: DemoFolder;
  readonly ports: DemoPorts;
  readonly signal: AbortSignal;
}

/** A running cluster. */
export interface DemoCluster extends AsyncDisposable {
  readonly url: string;
  /** The path of the administrator's kubeconfig. */
  readonly kubeconfigPath: string;
  /** The administrator's client. It came from that kubeconfig, so it works for `kubectl` too. */
  readonly api: KubeApi;
  /**
   * Makes a token by the token request subresource, as the kubelet does for a pod.
   *
   * @param audience For whom; the API server itself when it is left out.
   */
  tokenOf(account: Account, audience?: string): Promise<string>;
}

/** Starts the cluster. @throws {RefusalError} Its port is taken. */
export async function startCluster(parts: DemoClusterParts): Promise<DemoCluster> {
  const { clock, entropy, authority, folder, ports, signal } = parts;
  await using started = new AsyncDisposableStack();
  const fake = started.use(new FakeCluster({ clock, entropy, rbac: true }));
  for (const object of [...readDefinitions(), ...manifests()]) fake.apply(object);

  const { certPem: cert, keyPem: key } = await authority.issue({ ipAddresses: [HOST] });
  const { url } = await fake.listen({ hostname: HOST, port: ports.apiServer, cert, key })
    .catch((error: unknown) => {
      throw listenError(error, "apiServer", ports);
    });
  const kubeconfigPath = await folder.write(
    "kubeconfig",
    kubeconfig({
      server: url,
      caPem: authority.caPem,
      token: fake.adminToken,
      namespace: GROUP.namespace,
    }),
  );
  const { api } = started.use(
    await connect({
      env: (name) => name === "KUBECONFIG" ? kubeconfigPath : undefined,
      mode: "kubeconfig",
      clock,
      entropy,
      signal,
    }),
  );
  const stack = started.move();
  return {
    url,
    kubeconfigPath,
    api,
    async tokenOf(account, audience) {
      const audiences = audience === undefined ? [] : [audience];
      const { status } = await api.createSubresource(
        SERVICE_ACCOUNTS,
        account,
        "token",
        TOKEN_REQUESTS,
        { metadata: {}, spec: { audiences, expirationSeconds: VALID_SECONDS } },
        { signal },
      );
      if (status === undefined) throw new Error("Cannot use the token request as it has no status");
      return status.token;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
