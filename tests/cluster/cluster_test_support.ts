/**
 * Tests against a real API server: one cluster for all tests of a file.
 *
 * @module
 */

import { type Binaries, ensureBinaries, tellSkipped } from "./binaries.ts";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts";

// Before any test is registered: only then can a test be marked as skipped, and none passes without having run.
const binaries: Binaries | null = await ensureBinaries();
if (binaries === null) tellSkipped();

/** True when there is a real API server to test with. */
export const hasCluster: boolean = binaries !== null;

/** A test that gets the cluster of its file. */
export type ClusterTestBody = (cluster: Cluster, context: Deno.TestContext) => Promise<void> | void;

/** Registers a test. `name` is a sentence. */
export type ClusterTest = (name: string, body: ClusterTestBody) => void;

/**
 * Gives a file its cluster, started before its first test and stopped after its last one.
 *
 * The leak sanitizers stay on: they look at what a test leaves behind, and the cluster is there before and after. Where
 * there are no programs, the tests are skipped and one line says why. Call it once in a file; tests keep out of each
 * other's way with namespaces of their own.
 *
 * ```ts
 * const clusterTest = useCluster({ audit: true });
 *
 * clusterTest("a namespace can be made", async (cluster) => {
 *   await cluster.createNamespace("app");
 * });
 * ```
 *
 * @param options What the cluster is to have.
 */
export function useCluster(options: Omit<ClusterOptions, "binaries"> = {}): ClusterTest {
  let running: Cluster | undefined;
  if (binaries !== null) {
    Deno.test.beforeAll(async () => {
      running = await startCluster({ ...options, binaries });
    });
    Deno.test.afterAll(async () => {
      await running?.stop();
    });
  }
  return (name, body) => {
    Deno.test({
      name,
      ignore: binaries === null,
      async fn(context) {
        if (running === undefined) throw new Error("Cannot run as the cluster did not start");
        await body(running, context);
      },
    });
  };
}

let shared: ClusterTest | undefined;

/** Registers a test with a cluster of the usual kind: the definitions of `deploy/crds`, no audit log. */
export const clusterTest: ClusterTest = (name, body) => {
  shared ??= useCluster();
  shared(name, body);
};
