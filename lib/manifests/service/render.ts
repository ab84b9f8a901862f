/**
 * All objects of the service, from its values. The same values give the same objects in the same order.
 *
 * @module
 */

import type { Config } from "../../config/schema.ts";
import { rbacNeedsOf } from "../rbac.ts";
import { type ServiceConfiguration, serviceConfiguration } from "./configuration.ts";
import { ingressWarnings, networkPolicy } from "./network_policy.ts";
import {
  accountName,
  type Installation,
  type Manifest,
  roleObjects,
  serviceAccount,
} from "./objects.ts";
import { ValuesError } from "./read_values.ts";
import { referenceRoles, type ServiceNeeds, serviceRoles } from "./roles.ts";
import { certificates, monitors, selectsLeader, services } from "./services.ts";
import { INSTANCE_LABEL, MANAGED_BY_LABEL, NAME_LABEL, valueProblems } from "./value_rules.ts";
import type { ServiceValues } from "./values.ts";
import { configMaps, deployment, disruptionBudgets, neededGraceSeconds } from "./workload.ts";

/** Who writes the objects. */
export const MANAGER = "holdfast";

/** What was rendered. */
export interface RenderedService {
  /** The objects in the order in which they can be applied. */
  readonly objects: readonly Manifest[];
  /** What a person should look at before they apply it, one line each. */
  readonly warnings: readonly string[];
}

/** What is rendered beside the values. */
export interface RenderOptions {
  /** The version of this program: the tag of its image, and a label. */
  readonly version: string;
}

/**
 * Renders the manifests of the service.
 *
 * @throws {ValuesError} The values cannot be rendered: a part requires another one, something is missing or there twice, or
 * the pods would refuse to start with the configuration. All that is wrong is told at once.
 */
export function renderService(values: ServiceValues, options: RenderOptions): RenderedService {
  const problems = valueProblems(values);
  if (problems.length > 0) throw new ValuesError(problems);
  const configuration = serviceConfiguration(values);
  const refused = configurationProblems(values, configuration);
  if (refused.length > 0) throw new ValuesError(refused);

  const selector = { [NAME_LABEL]: MANAGER, [INSTANCE_LABEL]: values.name };
  const labels = {
    ...values.labels,
    ...selector,
    "app.kubernetes.io/version": options.version,
    [MANAGED_BY_LABEL]: MANAGER,
  };
  const installation: Installation = { name: values.name, namespace: values.namespace, labels };
  const { deployAPI, escrowTLS } = values.auxiliary;
  const policy = {
    installation,
    selector,
    tlsPort: escrowTLS.port,
    additionalIngress: deployAPI.networkPolicy.additionalIngress,
  };
  const service = { installation, selector, values };
  const workload = { ...service, configuration, version: options.version };
  const restricted = deployAPI.networkPolicy.enabled;
  return {
    objects: [
      ...(values.serviceAccount.create ? [serviceAccount(installation, values)] : []),
      ...rolesOf(installation, values, configuration.reading.config),
      ...configMaps(workload),
      ...certificates(service),
      ...services(service),
      ...(restricted ? [networkPolicy(policy)] : []),
      ...disruptionBudgets(workload),
      deployment(workload),
      ...monitors(service),
    ],
    warnings: [...(restricted ? ingressWarnings(policy) : []), ...warningsOf(values)],
  };
}

/** What the parts that are switched on must be allowed. */
export function serviceNeeds(values: ServiceValues, config: Config): ServiceNeeds {
  const { enabled, namespaces } = values.keyringEscrow;
  return {
    deployApi: config.deploy_api.enabled,
    plannedOperations: config.planned_operations.enabled,
    keyringEscrow: !enabled ? null : namespaces.length === 0 ? "everywhere" : namespaces,
    auxiliary: true,
    statusPage: config.auxiliary.status_page,
    own: rbacNeedsOf(config),
  };
}

function rolesOf(
  installation: Installation,
  values: ServiceValues,
  config: Config,
): readonly Manifest[] {
  if (!values.rbac.create) return [];
  const needs = serviceNeeds(values, config);
  const roles = values.rbac.rules === "reference" ? referenceRoles(needs) : serviceRoles(needs);
  return roleObjects(installation, accountName(values), roles);
}

function configurationProblems(
  values: ServiceValues,
  configuration: ServiceConfiguration,
): readonly string[] {
  const { problems } = configuration.reading;
  if (problems.length > 0) {
    return problems.map(({ message }) => `Cannot render 'config': ${message}`);
  }
  const needed = neededGraceSeconds(configuration);
  const { terminationGracePeriodSeconds: given } = values;
  return given === null || given >= needed ? [] : [
    `Cannot render 'terminationGracePeriodSeconds' as it must be at least ${needed}, which is host.prestop_grace_secs, host.shutdown_timeout_secs and 10 together: current value is ${given}`,
  ];
}

function warningsOf(values: ServiceValues): readonly string[] {
  const { auxiliary, keyringEscrow, metrics, replicaCount, strategy } = values;
  const { deployAPI } = auxiliary;
  return [
    ...(deployAPI.enabled && !auxiliary.service.enabled
      ? ["There is no Service, so callers need an address from elsewhere"]
      : []),
    ...(deployAPI.enabled && !selectsLeader(values) && auxiliary.service.enabled && replicaCount > 1
      ? [
        "The Service selects every replica, and only one leads: callers meet 503 not_leader now and then",
      ]
      : []),
    ...(deployAPI.enabled && (replicaCount < 2 || strategy === "Recreate")
      ? ["With one replica or Recreate, an update is a time in which no lease can be renewed"]
      : []),
    ...(keyringEscrow.enabled && keyringEscrow.namespaces.length === 0
      ? [
        "The service may read and write the Secrets of every namespace: name those of the groups in keyringEscrow.namespaces",
      ]
      : []),
    ...(metrics.serviceMonitor.enabled && metrics.podMonitor.enabled
      ? ["ServiceMonitor and PodMonitor are both on, so every metric is read twice"]
      : []),
  ];
}
