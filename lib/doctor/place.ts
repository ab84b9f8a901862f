/**
 * Where the service is, read from the values that its manifests are made from.
 *
 * @module
 */

import { serviceConfiguration } from "../manifests/service/configuration.ts";
import { TLS_PORT_NAME } from "../manifests/service/network_policy.ts";
import { accountName } from "../manifests/service/objects.ts";
import { serviceNeeds } from "../manifests/service/render.ts";
import { serviceRoles } from "../manifests/service/roles.ts";
import { serviceNames, tlsSecretName } from "../manifests/service/services.ts";
import type { ServiceValues } from "../manifests/service/values.ts";
import type { ServicePlace } from "./cluster_facts.ts";

/** The place of the service. The deployment API counts as switched on: it is what the checks are about. */
export function placeOf(values: ServiceValues): ServicePlace {
  const { config } = serviceConfiguration(values).reading;
  return {
    namespace: values.namespace,
    serviceAccount: accountName(values),
    services: serviceNames(values),
    secret: tlsSecretName(values),
    port: values.auxiliary.escrowTLS.port,
    portName: TLS_PORT_NAME,
    leaseName: values.leaderElection.leaseName,
    clusterDomain: values.clusterDomain,
    takesKeyrings: values.keyringEscrow.enabled,
    roles: serviceRoles({ ...serviceNeeds(values, config), deployApi: true }),
  };
}
