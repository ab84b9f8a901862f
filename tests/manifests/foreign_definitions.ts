/**
 * Definitions of the kinds that others bring: certificates of cert-manager, and monitors of the Prometheus operator. They
 * have the fields that are rendered here with their types, and no others, so that a wrong field is refused.
 *
 * @module
 */

const text = { type: "string" };
const texts = { type: "array", items: text };
const labels = { type: "object", additionalProperties: text };
const object = (properties: Readonly<Record<string, unknown>>, ...required: readonly string[]) => ({
  type: "object",
  properties,
  ...(required.length === 0 ? {} : { required }),
});
const selector = object({ matchLabels: labels });
const endpoints = { type: "array", items: object({ port: text, path: text, interval: text }) };

function definition(group: string, kind: string, plural: string, spec: unknown): unknown {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: object({ spec }, "spec") },
      }],
    },
  };
}

/** The definitions. */
export const foreignDefinitions: readonly unknown[] = [
  definition(
    "cert-manager.io",
    "Certificate",
    "certificates",
    object(
      {
        secretName: text,
        dnsNames: texts,
        duration: text,
        renewBefore: text,
        privateKey: object({
          algorithm: { type: "string", enum: ["RSA", "ECDSA", "Ed25519"] },
          size: { type: "integer" },
          rotationPolicy: { type: "string", enum: ["Never", "Always"] },
        }),
        usages: {
          type: "array",
          items: {
            type: "string",
            enum: ["digital signature", "key encipherment", "server auth", "client auth"],
          },
        },
        issuerRef: object({ name: text, kind: text, group: text }, "name"),
      },
      "secretName",
      "issuerRef",
    ),
  ),
  definition(
    "monitoring.coreos.com",
    "ServiceMonitor",
    "servicemonitors",
    object({ selector, endpoints }, "selector", "endpoints"),
  ),
  definition(
    "monitoring.coreos.com",
    "PodMonitor",
    "podmonitors",
    object({ selector, podMetricsEndpoints: endpoints }, "selector"),
  ),
];
