/**
 * What every generated object of an application says of itself.
 *
 * @module
 */

/** The metadata of a generated object. */
export interface ManifestMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The label with the application's name: the only one that selectors use, since a selector can never change. */
export const NAME_LABEL = "app.kubernetes.io/name";

/** Who writes the objects, in the words of the contract, so that what the reference generated is found beside it. */
const MANAGER = "autumn-plugin-kubernetes";

/** The metadata of an application's objects: they share one name, one namespace and two labels (kubernetes-plugin 13). */
export function appMetadata(name: string, namespace: string): ManifestMetadata {
  const labels = { [NAME_LABEL]: name, "app.kubernetes.io/managed-by": MANAGER };
  return { name, namespace, labels };
}
