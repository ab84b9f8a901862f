/**
 * The kinds of objects that only the checks of an administrator read.
 *
 * @module
 */

import { z } from "zod";
import type { Resource } from "../kube/api.ts";
import { kubeObject, resource } from "../kube/resources.ts";

const labels = z.record(z.string(), z.string());

const definitionSchema = kubeObject.extend({
  spec: z.looseObject({
    versions: z.array(z.looseObject({
      name: z.string(),
      served: z.boolean().optional(),
      subresources: z.looseObject({ status: z.looseObject({}).nullish() }).nullish(),
      selectableFields: z.array(z.looseObject({ jsonPath: z.string() })).nullish(),
    })),
  }),
  status: z.looseObject({
    conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullish(),
  }).optional(),
});

/** A definition of a custom kind. */
export type CustomResourceDefinition = z.infer<typeof definitionSchema>;

/** `apiextensions.k8s.io/v1` CustomResourceDefinition. */
export const DEFINITIONS: Resource<CustomResourceDefinition> = resource({
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
}, definitionSchema);

const serviceSchema = kubeObject.extend({
  spec: z.looseObject({
    selector: labels.nullish(),
    ports: z.array(z.looseObject({ port: z.number() })).nullish(),
  }).optional(),
});

/** A Service. */
export type Service = z.infer<typeof serviceSchema>;

/** Services. */
export const SERVICES: Resource<Service> = resource(
  { group: "", version: "v1", plural: "services", kind: "Service", namespaced: true },
  serviceSchema,
);

const named = z.looseObject({ name: z.string().nullish() });
const items = z.array(z.looseObject({ key: z.string() })).nullish();

const podSchema = kubeObject.extend({
  spec: z.looseObject({
    serviceAccountName: z.string().nullish(),
    containers: z.array(z.looseObject({
      ports: z.array(
        z.looseObject({ name: z.string().nullish(), containerPort: z.number() }),
      ).nullish(),
    })).nullish(),
    volumes: z.array(z.looseObject({
      configMap: named.nullish(),
      secret: z.looseObject({ secretName: z.string().nullish(), items }).nullish(),
      projected: z.looseObject({
        sources: z.array(z.looseObject({
          configMap: named.nullish(),
          secret: named.extend({ items }).nullish(),
        })).nullish(),
      }).nullish(),
    })).nullish(),
  }).optional(),
});

/** A pod, with what it mounts. */
export type Pod = z.infer<typeof podSchema>;

/** Pods. */
export const MOUNTING_PODS: Resource<Pod> = resource(
  { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true },
  podSchema,
);

const selector = z.looseObject({
  matchLabels: labels.nullish(),
  matchExpressions: z.array(z.looseObject({
    key: z.string(),
    operator: z.string(),
    values: z.array(z.string()).nullish(),
  })).nullish(),
});

const policySchema = kubeObject.extend({
  spec: z.looseObject({
    podSelector: selector.nullish(),
    policyTypes: z.array(z.string()).nullish(),
    ingress: z.array(z.looseObject({
      from: z.array(z.looseObject({
        namespaceSelector: selector.nullish(),
        podSelector: selector.nullish(),
        ipBlock: z.looseObject({}).nullish(),
      })).nullish(),
      ports: z.array(z.looseObject({
        protocol: z.string().nullish(),
        port: z.union([z.number(), z.string()]).nullish(),
        endPort: z.number().nullish(),
      })).nullish(),
    })).nullish(),
  }),
});

/** A label selector. An empty one selects everything. */
export type LabelSelector = z.infer<typeof selector>;

/** A NetworkPolicy. */
export type NetworkPolicy = z.infer<typeof policySchema>;

/** `networking.k8s.io/v1` NetworkPolicy. */
export const NETWORK_POLICIES: Resource<NetworkPolicy> = resource({
  group: "networking.k8s.io",
  version: "v1",
  plural: "networkpolicies",
  kind: "NetworkPolicy",
  namespaced: true,
}, policySchema);

const accessReviewSchema = kubeObject.extend({
  metadata: kubeObject.shape.metadata.default({}),
  spec: z.looseObject({
    user: z.string().optional(),
    groups: z.array(z.string()).optional(),
    resourceAttributes: z.looseObject({
      verb: z.string(),
      // The core group is left out of an answer.
      group: z.string().optional(),
      resource: z.string(),
      subresource: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
    }).optional(),
  }),
  status: z.looseObject({ allowed: z.boolean() }).optional(),
});

/** A question what somebody may do, and its answer. */
export type AccessReview = z.infer<typeof accessReviewSchema>;

function accessReview(kind: string, namespaced: boolean): Resource<AccessReview> {
  const plural = `${kind.toLowerCase()}s`;
  const identity = { group: "authorization.k8s.io", version: "v1", plural, kind, namespaced };
  return resource(identity, accessReviewSchema);
}

/** What the caller itself may do. Every authenticated user may ask. */
export const SELF_ACCESS_REVIEWS: Resource<AccessReview> = accessReview(
  "SelfSubjectAccessReview",
  false,
);

/** What anybody may do. */
export const ACCESS_REVIEWS: Resource<AccessReview> = accessReview("SubjectAccessReview", false);

/** What anybody may do in one namespace. */
export const LOCAL_ACCESS_REVIEWS: Resource<AccessReview> = accessReview(
  "LocalSubjectAccessReview",
  true,
);

const selfReviewSchema = kubeObject.extend({
  metadata: kubeObject.shape.metadata.default({}),
  status: z.looseObject({ userInfo: z.looseObject({ username: z.string().optional() }).optional() })
    .optional(),
});

/** Who the caller is. */
export const SELF_REVIEWS: Resource<z.infer<typeof selfReviewSchema>> = resource({
  group: "authentication.k8s.io",
  version: "v1",
  plural: "selfsubjectreviews",
  kind: "SelfSubjectReview",
  namespaced: false,
}, selfReviewSchema);
