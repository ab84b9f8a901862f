/**
 * Where the service is, read from the values that its manifests are made from.
 *
 * @module
 */

import { TLS_PORT_NAME } from "../manifests/service/network_policy.ts";
import { serviceRoles } from "../manifests/service/roles.ts";
import { serviceNames, tlsSecretName } from "../manifests/service/services.ts";
import type { ServiceValues } from "../manifests/service/values.ts";
import type { ServicePlace } from "./cluster_facts.ts";

/** The place of the service. The deployment API counts as switched on: it is what the checks are about. */
export function placeOf(values: ServiceValues): ServicePlace {
  const { auxiliary, keyringEscrow, leaderElection, plannedOperations } = values;
  const { leaseName, label } = leaderElection;
  return {
    namespace: values.namespace,
    serviceAccount: values.serviceAccount.name || values.name,
    services: serviceNames(values),
    secret: tlsSecretName(values),
    port: auxiliary.escrowTLS.port,
    portName: TLS_PORT_NAME,
    leaseName,
    clusterDomain: values.clusterDomain,
    roles: serviceRoles({
      deployApi: true,
      plannedOperations: plannedOperations.enabled,
      keyringEscrow: !keyringEscrow.enabled
        ? null
        : keyringEscrow.namespaces.length === 0
        ? "everywhere"
        : keyringEscrow.namespaces,
      auxiliary: auxiliary.service.enabled,
      own: { leaseName, labelLeader: label, events: true },
    }),
  };
}
