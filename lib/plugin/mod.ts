/**
 * What a Hono application gets in one call: its life (probes, health, metrics, an end in order), and with the plugin its
 * place in a Kubernetes cluster. docs/library.md is the guide.
 *
 * @module
 */

export type { Config } from "../config/schema.ts";
export { ConfigError } from "../config/errors.ts";
export type { Health, HealthDetail, HealthGroup, HealthIndicator } from "../host/health.ts";
export { type ApplicationHost, createHost } from "../host/host.ts";
export type { HostOptions } from "../host/host_options.ts";
export type { MetricsSource } from "../host/host_metrics.ts";
export type { ClosableSocket } from "../host/host_sockets.ts";
export type { Host, HostPlugin, HostSystem, StartHook, Worker } from "../host/hooks.ts";
export type { ShutdownHook, ShutdownStage } from "../host/lifecycle.ts";
export type { ClusterMode, Connector } from "./cluster.ts";
export {
  ConfigMapDecodeError,
  type ConfigMapStore,
  type Schema,
  type Validation,
  type ValidationIssue,
} from "./config_maps.ts";
export { ClusterUnavailableError, NoKubeConfigError } from "./errors.ts";
export type { MetricSample, PluginMetrics } from "./metrics.ts";
export {
  kubernetes,
  type KubernetesConfig,
  type KubernetesEnv,
  type KubernetesOptions,
  type KubernetesPlugin,
} from "./plugin.ts";
export type { KubernetesTask, PluginTask } from "./plugin_task.ts";
export { type PodInfo, readPodInfo } from "./pod_info.ts";
export type { KubernetesContext, KubernetesRuntime } from "./runtime.ts";
export { type KubernetesParts, startKubernetes } from "./start.ts";
export {
  type CancelTimer,
  type Clock,
  type Deadline,
  DeadlineExceededError,
  sleep,
  startDeadline,
} from "../runtime/clock.ts";
export type { Entropy } from "../runtime/entropy.ts";
export { type LogFields, type Logger, type LogValue, silentLogger } from "../runtime/log.ts";
