/**
 * Starts the plugin, in the order of kubernetes-plugin 1.
 *
 * @module
 */

import { ConfigError, problemOf } from "../config/errors.ts";
import { libraryRules, takesPart } from "../config/rules.ts";
import type { Config } from "../config/schema.ts";
import type { Candidate, Leadership, LeaderTaskError } from "../election/mod.ts";
import type { HostSystem } from "../host/hooks.ts";
import type { AnswerObserver } from "../kube/api.ts";
import { KubeError } from "../kube/errors.ts";
import { startDeadline } from "../runtime/clock.ts";
import { toHex } from "../runtime/entropy.ts";
import type { Logger } from "../runtime/log.ts";
import { createTracer } from "../tracing/create_tracer.ts";
import type { Tracer } from "../tracing/tracer.ts";
import { type Connector, type OpenCluster, openCluster } from "./cluster.ts";
import { watchConfigMaps } from "./config_map_watch.ts";
import { ConfigMapStore } from "./config_maps.ts";
import { ClusterUnavailableError } from "./errors.ts";
import { ApiHealth } from "./health.ts";
import { createElection, Leading, timingOf } from "./leading.ts";
import { PluginMetrics } from "./metrics.ts";
import { keepLeaderLabel } from "./leader_label.ts";
import { createPodEvents, type PodEvents } from "./pod_events.ts";
import { type PodInfo, readPodInfo } from "./pod_info.ts";
import { type PluginTask, withContext } from "./plugin_task.ts";
import { type KubernetesContext, KubernetesRuntime } from "./runtime.ts";

/** Milliseconds within which a required cluster must show that it is there. */
const FIRST_CALL_MS = 5_000;

/** What {@linkcode startKubernetes} takes. */
export interface KubernetesParts {
  /** The whole configuration; its sections `kubernetes` and `host` are looked at. */
  readonly config: Config;
  readonly system: HostSystem;
  readonly logger: Logger;
  /** Ends the start. */
  readonly signal: AbortSignal;
  /** Brings the client, and makes the mode `custom`. @default {the kubeconfig, then the pod's credentials} */
  readonly connector?: Connector | undefined;
  /** Stands in for what the Downward API says. */
  readonly podInfo?: PodInfo | undefined;
  /** @default {[]} */
  readonly leaderTasks?: readonly PluginTask[] | undefined;
  /** Is told of each leader task that throws. @default {it is logged, and the term ends} */
  readonly onTaskError?: ((error: LeaderTaskError) => void) | undefined;
  /** Sees every answer of the API server. */
  readonly observer?: AnswerObserver | undefined;
  /** Makes the spans of the election; `null` for none. @default {what `tracing.enabled` asks for} */
  readonly tracer?: Tracer | null | undefined;
  /** @default {new ones} */
  readonly metrics?: PluginMetrics | undefined;
}

/**
 * Starts the plugin outside a host: for tests, and for programs with a life of their own.
 *
 * @throws {ConfigError} The configuration breaks a rule, or leader tasks exist and the election is off.
 * @throws {NoClusterError} A cluster is required, and there is none.
 * @throws {ClusterConfigError} Something says where the cluster is and cannot be used.
 * @throws {ClusterUnavailableError} A cluster is required, and does not answer within 5 s.
 * @throws {RangeError} The namespace of the credentials is no DNS label, or the identity is blank.
 */
export async function startKubernetes(parts: KubernetesParts): Promise<KubernetesRuntime> {
  const { config, system, logger, signal, leaderTasks = [] } = parts;
  const { kubernetes } = config;
  // 1, 2. What is wrong with the configuration is told before anything is done.
  checkConfig(config, leaderTasks);
  // 3. This a process knows also without a cluster.
  const podInfo = parts.podInfo ??
    readPodInfo({ env: system.env, readTextFile: (path) => system.readTextFile(path) });
  const metrics = parts.metrics ?? new PluginMetrics();
  // 4, 5. Find the cluster.
  const cluster = await openCluster({
    system,
    logger,
    enabled: kubernetes.enabled,
    required: kubernetes.required,
    podName: podInfo.name,
    connector: parts.connector,
    onCall: metrics.onCall,
    observer: parts.observer,
    signal,
  });
  try {
    // 6. A required cluster must be there.
    if (kubernetes.required) await mustAnswer(cluster, system, signal);
    // 7 to 11. Set the parts going.
    return assemble(parts, { cluster, podInfo, metrics });
  } catch (error) {
    cluster[Symbol.dispose]();
    throw error;
  }
}

function checkConfig(config: Config, leaderTasks: readonly PluginTask[]): void {
  const source = "the configuration";
  const problems = libraryRules.flatMap((rule) => rule(config))
    .map(({ keys, message }) => problemOf(source, message, keys[0]));
  const { enabled, leader_election } = config.kubernetes;
  if (leaderTasks.length > 0 && enabled && !leader_election.enabled) {
    const key = "kubernetes.leader_election.enabled";
    const message =
      `Cannot run leader tasks without leader election: set '${key}' to true, current value is false`;
    problems.push(problemOf(source, message, key));
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

async function mustAnswer(
  { api, mode }: OpenCluster,
  { clock }: HostSystem,
  parent: AbortSignal,
): Promise<void> {
  if (api === null) return;
  using limit = startDeadline(clock, FIRST_CALL_MS, parent);
  try {
    await api.version({ signal: limit.signal, timeoutMs: FIRST_CALL_MS });
  } catch (error) {
    if (parent.aborted) throw error;
    const reason = error instanceof KubeError ? error.kind : limit.expired ? "timeout" : "unknown";
    throw new ClusterUnavailableError(mode, reason);
  }
}

/** What the first steps brought. */
interface Found {
  readonly cluster: OpenCluster;
  readonly podInfo: PodInfo;
  readonly metrics: PluginMetrics;
}

function assemble(parts: KubernetesParts, found: Found): KubernetesRuntime {
  const { config: { kubernetes, host }, system: { clock }, logger } = parts;
  const { cluster, podInfo, metrics } = found;
  const { api, mode } = cluster;
  // 7. Which namespace.
  const namespace = api && (kubernetes.namespace || podInfo.namespace || api.defaultNamespace);
  // 8. Where Events go.
  const events = createEvents(parts, found, namespace);
  // 9. The store and the election: what can fail of it comes before anything is set going.
  const { watch } = kubernetes.config_maps;
  const configMaps = api !== null && watch.length > 0 ? new ConfigMapStore(watch) : null;
  const candidate = createCandidate(parts, found, namespace);
  const told = candidate && events?.followTerms(candidate);
  const started = Promise.withResolvers<KubernetesContext>();
  const leading = candidate && lead(parts, candidate, started.promise);
  // 10. One watch for each ConfigMap, and one refresher of health.
  const end = new AbortController();
  const { signal } = end;
  const onChecked = (up: boolean) => metrics.checked(up);
  const health = api && new ApiHealth({ api, clock, signal, onChecked });
  const watching = api !== null && namespace !== null && configMaps !== null
    ? watchConfigMaps({ api, namespace, store: configMaps, metrics, clock, logger, signal })
    : null;
  const labelling = leading && keepLabel(parts, found, namespace, leading.leadership, signal);
  const background = Promise.all([told, watching, labelling, health?.refresh()]);
  // 11. Tell of it.
  events?.started(mode);
  logger.info("kubernetes plugin started", { mode, namespace, role: host.role });
  const runtime = new KubernetesRuntime({
    cluster,
    namespace,
    podInfo,
    metrics,
    events,
    configMaps,
    leading,
    labelling,
    health,
    clock,
    end,
    background,
  });
  started.resolve(runtime);
  return runtime;
}

function createEvents(
  { config, system: { clock, entropy }, logger }: KubernetesParts,
  { cluster: { api }, podInfo, metrics }: Found,
  namespace: string | null,
): PodEvents | null {
  if (api === null || namespace === null || !config.kubernetes.events) return null;
  const figures = metrics.events;
  return createPodEvents({ api, clock, entropy, logger, figures, podInfo, namespace });
}

/** Makes the candidate of this replica; `null` when it takes no part. */
function createCandidate(
  parts: KubernetesParts,
  { cluster: { mode, electionApi }, podInfo, metrics: { registry } }: Found,
  namespace: string | null,
): Candidate | null {
  const { config, system: { clock, entropy }, logger, leaderTasks = [] } = parts;
  const election = config.kubernetes.leader_election;
  // Otherwise each replica of a platform without Kubernetes would run what only one of them may.
  const leadsAlone = mode === "detached" && election.lead_when_detached;
  if (mode === "detached" && leaderTasks.length > 0 && !(leadsAlone && takesPart(config))) {
    logger.warn("leader tasks do not run, since there is no cluster to elect a leader in", {
      tasks: leaderTasks.map(({ name }) => name),
    });
  }
  if (!takesPart(config) || mode === "disabled") return null;
  const identity = election.identity ||
    `${podInfo.name ?? "holdfast"}-${toHex(entropy.bytes(4))}`;
  const tracer = parts.tracer === undefined
    ? createTracer({ config: config.tracing, logger })
    : parts.tracer ?? undefined;
  const electionParts = { election, clock, entropy, logger, registry, identity, tracer };
  if (leadsAlone) {
    logger.warn("this process leads without an election: never run a second one beside it");
    return createElection(electionParts, null);
  }
  if (electionApi === null || namespace === null) return null;
  return createElection(electionParts, { api: electionApi, namespace });
}

function lead(
  { config, system, logger, leaderTasks = [], onTaskError = () => {} }: KubernetesParts,
  candidate: Candidate,
  context: Promise<KubernetesContext>,
): Leading {
  return new Leading({
    candidate,
    tasks: leaderTasks.map((task) => withContext(task, context)),
    timing: timingOf(config.kubernetes.leader_election),
    clock: system.clock,
    logger,
    onTaskError,
    exit: (code) => system.exit(code),
  });
}

function keepLabel(
  { config, system: { clock }, logger }: KubernetesParts,
  { cluster: { api }, podInfo: { name, namespace: own, uid } }: Found,
  resolved: string | null,
  leadership: Leadership,
  signal: AbortSignal,
): Promise<void> | null {
  if (!config.kubernetes.leader_election.label_leader || api === null) return null;
  const namespace = own ?? resolved;
  if (name === undefined || namespace === null) {
    logger.warn("the leader is not labelled, since this pod's name is not known: set POD_NAME");
    return null;
  }
  const pod = { name, namespace, ...(uid === undefined ? {} : { uid }) };
  return keepLeaderLabel({ api, leadership, pod, clock, logger, signal });
}
