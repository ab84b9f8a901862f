/**
 * What is known of the service's cluster before anybody judges it.
 *
 * @module
 */

import type { KubeErrorClass } from "../kube/errors.ts";
import type { ServiceRole } from "../manifests/service/roles.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import type { CustomResourceDefinition, NetworkPolicy } from "./kinds.ts";
import type { Labels } from "./network_rules.ts";
import type { CertificateFacts } from "./trust.ts";

/** The election Lease of the reference operator (deploy-api 15.1). */
export const REFERENCE_LEASE = "bloodraven.shipstream.io";

/** Something that was looked for. `unseen`: the look failed, and nothing follows from it. */
export type Sight<T> =
  | { readonly type: "seen"; readonly value: T }
  | { readonly type: "absent" }
  | { readonly type: "unseen"; readonly why: KubeErrorClass };

/** Where the service is, by the values that its manifests are made from. */
export interface ServicePlace {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The names of the Services: the one that callers know first. */
  readonly services: readonly string[];
  readonly secret: string;
  readonly port: number;
  readonly portName: string;
  readonly leaseName: string;
  readonly clusterDomain: string;
  /** Sidecars bring keyrings: they use the last Service, which selects every pod. */
  readonly takesKeyrings: boolean;
  /** The roles of the parts that are switched on. */
  readonly roles: readonly ServiceRole[];
}

/** One verb on one kind. */
export interface Right {
  readonly verb: string;
  /** The plural, with `/` and the subresource where there is one. */
  readonly resource: string;
  readonly group: string;
  /** Empty for all namespaces. */
  readonly namespace: string;
  /** Empty for all names. */
  readonly name: string;
}

/** What the service account may do of what a role is for. */
export interface RoleFacts {
  /** The suffix of the role, and where it holds. */
  readonly role: string;
  readonly scope: string;
  /** What is not allowed; unseen when nobody answered. */
  readonly missing: Sight<readonly Right[]>;
}

/** The Secret with the certificate. Of the key nothing is kept. */
export interface SecretFacts {
  /** `tls.crt`; `null` when it is absent or holds no certificate. */
  readonly certificate: CertificateFacts | null;
  readonly hasCertificateKey: boolean;
  readonly hasPrivateKey: boolean;
  /** The key belongs to the certificate. */
  readonly keyFits: boolean;
  /** The names of the Service that callers use and that are not in the certificate. */
  readonly missingNames: readonly string[];
}

/** A Lease of an election. */
export interface ElectionFacts {
  /** Empty when it is free. */
  readonly holder: string;
  /** Milliseconds since 1970 at which it ends unless it is renewed; `null` when it does not say. */
  readonly endsMs: number | null;
}

/** A pod. */
export interface PodFacts {
  readonly name: string;
  readonly labels: Labels;
}

/** A service account that may deploy. */
export interface ClientFacts {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The databases that name it. */
  readonly databases: readonly string[];
  /** The labels of its namespace. */
  readonly namespaceLabels: Sight<Labels>;
  readonly account: Sight<unknown>;
  /** The pods that run under it now. */
  readonly pods: Sight<readonly PodFacts[]>;
}

/** The pods of a group that is encrypted at rest: their sidecars bring keyrings to the TLS port. */
export interface SidecarFacts {
  readonly group: string;
  /** The Secret that the group's `spec.tls` names, whose `ca.crt` its sidecars trust; empty when it names none. */
  readonly secret: string;
  /** How many authorities that Secret has, else the pods mount, as far as they can be read. */
  readonly authorities: number;
  /** One of them signed the service's certificate. */
  readonly isTrusted: boolean;
  readonly pods: Sight<number>;
}

/** All of it. */
export interface ClusterFacts {
  readonly place: ServicePlace;
  /** The API server's time. */
  readonly now: LeaseInstant;
  /** The version of the API server. */
  readonly version: Sight<string>;
  readonly definitions: {
    readonly mysqlfailovergroups: Sight<CustomResourceDefinition>;
    readonly mysqldatabases: Sight<CustomResourceDefinition>;
  };
  readonly rights: readonly RoleFacts[];
  readonly secret: Sight<SecretFacts>;
  /** The selector of each Service, in the order of the place. */
  readonly services: readonly Sight<Labels>[];
  /** The pods of the service: those of the last Service, which selects all. */
  readonly pods: Sight<readonly PodFacts[]>;
  readonly policies: Sight<readonly NetworkPolicy[]>;
  readonly election: Sight<ElectionFacts>;
  /** The Lease of the reference operator in the namespace of the service. */
  readonly reference: Sight<ElectionFacts>;
  readonly clients: Sight<readonly ClientFacts[]>;
  readonly sidecars: Sight<readonly SidecarFacts[]>;
}
