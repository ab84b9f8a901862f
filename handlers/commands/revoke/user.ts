/**
 * Who runs the command, for the Event that tells of it.
 *
 * @module
 */

import { z } from "zod";
import type { KubeApi, Resource } from "../../../lib/kube/api.ts";
import { KubeError } from "../../../lib/kube/errors.ts";
import { kubeObject, resource } from "../../../lib/kube/resources.ts";
import { kubeconfigPaths, kubeconfigUser } from "../bootstrap.ts";
import type { System } from "../system.ts";

const reviewSchema = kubeObject.extend({
  metadata: kubeObject.shape.metadata.default({}),
  status: z.looseObject({ userInfo: z.looseObject({ username: z.string().optional() }).optional() })
    .optional(),
});

/** `authentication.k8s.io/v1` SelfSubjectReview: answered, never stored. Since Kubernetes 1.28. */
const SELF_SUBJECT_REVIEWS: Resource<z.infer<typeof reviewSchema>> = resource({
  group: "authentication.k8s.io",
  version: "v1",
  plural: "selfsubjectreviews",
  kind: "SelfSubjectReview",
  namespaced: false,
}, reviewSchema);

/** The user as the API server knows it; else as the kubeconfig calls it; else words for nobody that is known. */
export async function userOf(system: System, api: KubeApi, signal: AbortSignal): Promise<string> {
  try {
    const review = await api.create(SELF_SUBJECT_REVIEWS, { metadata: {} }, { signal });
    const { username = "" } = review.status?.userInfo ?? {};
    if (username !== "") return username;
  } catch (error) {
    // An older server has no such review, and a Role may forbid it: neither must keep anybody from revoking.
    if (!(error instanceof KubeError)) throw error;
  }
  const texts = kubeconfigPaths(system.env).flatMap((path) => system.readTextFile(path) ?? []);
  const name = kubeconfigUser(texts);
  return name === undefined ? "An unknown user" : `${name} (so called by the kubeconfig)`;
}
