/**
 * The service as its own manifests run it, on a real API server: the rendered account, roles and bindings and nothing else,
 * and the program as a process with the rendered environment.
 *
 * No kubelet runs here, so the pod is an object of its own, and what the kubelet would do is done by hand: the variables
 * from the pod's fields, the mounted files, the token.
 *
 * @module
 */

import { resourceOf } from "../../lib/manifests/kinds.ts";
import type { PolicyRule } from "../../lib/manifests/rbac.ts";
import type { EnvVar } from "../../lib/manifests/service/configuration.ts";
import type { Manifest } from "../../lib/manifests/service/objects.ts";
import { readServiceValues } from "../../lib/manifests/service/read_values.ts";
import { renderService } from "../../lib/manifests/service/render.ts";
import { createAuthority } from "../../lib/testing/mod.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { pause } from "../cluster/keeper.ts";
import { member, mustSucceed } from "../cluster/raw_client.ts";
import { DeploymentClient } from "../service/deployment_client.ts";
import { seedOrders } from "../service/orders.ts";
import { ServiceProcess } from "../service/service_process.ts";

const { signal } = new AbortController();

/** The collection of an object in the API. */
export function collectionOf({ apiVersion, kind, metadata: { namespace } }: Manifest): string {
  const { group, version, plural } = resourceOf(apiVersion, kind);
  const base = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespace === undefined
    ? `${base}/${plural}`
    : `${base}/namespaces/${namespace}/${plural}`;
}

/** A rule of a role, and where the role is bound. */
export interface BoundRule {
  /** The namespace of the role; `undefined` for the whole cluster. */
  readonly namespace: string | undefined;
  readonly rule: PolicyRule;
}

/** The rules that objects grant. */
export function rulesOf(objects: readonly Manifest[]): readonly BoundRule[] {
  return objects.filter(({ kind }) => kind === "ClusterRole" || kind === "Role").flatMap((
    { metadata: { namespace }, rules },
  ) => Array.isArray(rules) ? rules.map((rule: PolicyRule) => ({ namespace, rule })) : []);
}

/** A place in which the service runs by its manifests. */
export class ServicePlace implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  private constructor(
    readonly cluster: Cluster,
    /** The namespace of the service. */
    readonly own: string,
    /** The namespace of the group and of those who deploy. */
    readonly data: string,
    /** What was rendered. */
    readonly objects: readonly Manifest[],
    readonly account: string,
    readonly folder: string,
    readonly http: Deno.HttpClient,
  ) {
    this.#stack.defer(() => Deno.remove(folder, { recursive: true }));
    this.#stack.defer(() => http.close());
  }

  /** The user that the API server knows. */
  get user(): string {
    return `system:serviceaccount:${this.own}:${this.account}`;
  }

  /** Renders values and applies the account and the roles. @param layer Gets the namespaces and gives values. */
  static async open(
    cluster: Cluster,
    layer: (places: { own: string; data: string }) => Readonly<Record<string, unknown>>,
  ): Promise<ServicePlace> {
    const id = crypto.randomUUID().slice(0, 8);
    const places = { own: `own-${id}`, data: `data-${id}` };
    const name = `service-${id}`;
    const values = readServiceValues([{ name, namespace: places.own }, layer(places)]);
    const { objects } = renderService(values, { version: "1.2.3" });
    for (const namespace of Object.values(places)) await cluster.createNamespace(namespace);
    for (const object of objects) {
      if (object.kind !== "ServiceAccount" && !/Role(Binding)?$/.test(object.kind)) continue;
      const answer = await cluster.admin("POST", collectionOf(object), { body: object });
      mustSucceed(answer, `create the ${object.kind}`);
    }
    await cluster.createServiceAccount(places.data, "deployer");
    const clients = [{ namespace: places.data, serviceAccount: "deployer" }];
    const databases = { tenant: clients, billing: clients };
    await seedOrders(cluster.adminApi, { namespace: places.data, databases, signal });

    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
    const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
    await Deno.writeTextFile(`${folder}/tls.crt`, certPem);
    await Deno.writeTextFile(`${folder}/tls.key`, keyPem);
    const token = await cluster.token({ namespace: places.own, serviceAccount: name });
    await Deno.writeTextFile(`${folder}/kubeconfig`, cluster.kubeconfig({ token }, places.own));
    const http = Deno.createHttpClient({ caCerts: [authority.caPem], poolIdleTimeout: 20_000 });
    const { own, data } = places;
    const place = new ServicePlace(cluster, own, data, objects, name, folder, http);
    await place.#untilGranted();
    return place;
  }

  /** Makes the pod that the Deployment would make, and starts the program in its place. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
    const { cluster, own: namespace, objects, folder } = this;
    const deployment = objects.find(({ kind }) => kind === "Deployment");
    const template = member(deployment, "spec", "template");
    const name = `${this.account}-${crypto.randomUUID().slice(0, 5)}`;
    const pod = mustSucceed(
      await cluster.admin("POST", `/api/v1/namespaces/${namespace}/pods`, {
        body: {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { ...Object(member(template, "metadata")), name },
          spec: { ...Object(member(template, "spec")), automountServiceAccountToken: false },
        },
      }),
      "make the pod",
    );
    const config = objects.find(({ kind }) => kind === "ConfigMap");
    const file = member(config, "data", "holdfast.yaml");
    if (typeof file === "string") await Deno.writeTextFile(`${folder}/holdfast.yaml`, file);
    const fields: Readonly<Record<string, unknown>> = {
      "metadata.name": name,
      "metadata.namespace": namespace,
      "metadata.uid": member(pod.body, "metadata", "uid"),
      "spec.nodeName": "node",
    };
    const rendered: EnvVar[] = Object(member(template, "spec", "containers", 0, "env"));
    const service = await ServiceProcess.start({
      kubeconfig: `${folder}/kubeconfig`,
      certFile: `${folder}/tls.crt`,
      keyFile: `${folder}/tls.key`,
      namespace,
      env: {
        ...Object.fromEntries(rendered.map((variable) => [
          variable.name,
          "value" in variable
            ? variable.value
            : String(fields[variable.valueFrom.fieldRef.fieldPath]),
        ])),
        ...(file === undefined ? {} : { AUTUMN_MANIFEST_DIR: folder }),
        ...env,
      },
    });
    this.#stack.use(service);
    return service;
  }

  /** A client of a service, with the token of the account that the databases name. */
  async client(service: ServiceProcess): Promise<DeploymentClient> {
    const token = await this.cluster.token({
      namespace: this.data,
      serviceAccount: "deployer",
      audiences: ["bloodraven-deploy"],
    });
    return new DeploymentClient({
      url: `https://${service.address("tls")}`,
      token,
      group: "orders",
      send: (url, init) => fetch(url, { ...init, client: this.http }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  /** A role takes a moment from the store to the authorizer. */
  async #untilGranted(): Promise<void> {
    for (const { namespace, rule } of rulesOf(this.objects)) {
      const [full = "", verb] = [rule.resources[0], rule.verbs[0]];
      const [resource, subresource] = full.split("/");
      const body = {
        spec: {
          user: this.user,
          resourceAttributes: {
            group: rule.apiGroups[0],
            resource,
            subresource,
            verb,
            namespace,
            name: rule.resourceNames?.[0],
          },
        },
      };
      await eventually(`${verb} ${full}`, async () => {
        const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        const answer = mustSucceed(await this.cluster.admin("POST", path, { body }), "review");
        return member(answer.body, "status", "allowed") === true;
      });
    }
  }
}

/** Waits until something is so, for a minute: the machine may be busy. */
export async function eventually(
  what: string,
  isSo: () => Promise<boolean> | boolean,
): Promise<void> {
  const until = performance.now() + 60_000;
  while (!await isSo()) {
    if (performance.now() > until) throw new Error(`Cannot go on as it did not come: ${what}`);
    await pause(30);
  }
}
