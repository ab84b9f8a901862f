/** What the tests of the fake cluster share. */

import { FakeCluster, type FakeClusterOptions } from "../../lib/testing/fake_cluster.ts";
import { seededEntropy } from "../../lib/testing/entropy.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";

/** A fake cluster with a clock that stands still. */
export function newFake(options: Partial<FakeClusterOptions> = {}) {
  const clock = new TestClock();
  const fake = new FakeCluster({ clock, entropy: seededEntropy(1), ...options });
  return { clock, fake };
}

/** An answer, read whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Loose;
}

/** An answer's body: tests look at single members of it. */
export interface Loose {
  readonly kind?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly { readonly field?: string; readonly reason: string }[];
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: unknown;
  readonly data?: Readonly<Record<string, string>>;
  readonly items?: readonly Loose[];
  readonly [key: string]: unknown;
}

export const MERGE = "application/merge-patch+json";
export const JSON_PATCH = "application/json-patch+json";

/** Sends one request in process. A body that is a string is sent as it is. */
export async function ask(
  fake: FakeCluster,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fake.fetch(`https://fake${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: parse(text) };
}

function parse(text: string): Loose {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text };
  }
}

/** A patch. */
export function patch(
  fake: FakeCluster,
  path: string,
  body: unknown,
  type = MERGE,
): Promise<Answer> {
  return ask(fake, "PATCH", path, body, { "content-type": type });
}

/** The path of the leases of the default namespace. */
export const LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/** A lease to send. */
export function lease(name: string, metadata: object = {}, spec: object = {}) {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, ...metadata },
    spec: { holderIdentity: "a", leaseDurationSeconds: 15, ...spec },
  };
}

/** The version of an answered object. */
export function versionOf(answer: Answer): string {
  return String(answer.body.metadata?.resourceVersion);
}

/** The fields that a refusal names. */
export function fieldsOf(answer: Answer): (string | undefined)[] {
  return (answer.body.details?.causes ?? []).map((cause) => cause.field);
}

/** The path of the widgets of the default namespace. */
export const WIDGETS_PATH = "/apis/example.io/v1/namespaces/default/widgets";

/** A CRD with one of everything. */
export const WIDGET_CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.io" },
  spec: {
    group: "example.io",
    scope: "Namespaced",
    names: { plural: "widgets", kind: "Widget", shortNames: ["wd"] },
    versions: [{
      name: "v1",
      served: true,
      storage: true,
      subresources: { status: {} },
      selectableFields: [{ jsonPath: ".spec.ref.name" }],
      additionalPrinterColumns: [
        { name: "Site", type: "string", jsonPath: ".status.site" },
        { name: "Count", type: "integer", jsonPath: ".spec.n", priority: 1 },
        {
          name: "Ready",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Ready")].status',
        },
        { name: "Owner", type: "string", jsonPath: ".metadata.labels.example\\.io/owner" },
        { name: "Entries", type: "string", jsonPath: ".spec.list[*].ns" },
        { name: "First", type: "string", jsonPath: ".spec.list[0].ns" },
        { name: "Seen", type: "date", jsonPath: ".status.seen" },
      ],
      schema: {
        openAPIV3Schema: {
          type: "object",
          required: ["spec"],
          properties: {
            spec: {
              type: "object",
              required: ["ref"],
              properties: {
                ref: {
                  type: "object",
                  required: ["name"],
                  properties: {
                    name: {
                      type: "string",
                      minLength: 1,
                      maxLength: 10,
                      pattern: "^[a-z]+$",
                      "x-kubernetes-validations": [{
                        rule: "self == oldSelf",
                        message: "is immutable",
                      }],
                    },
                  },
                },
                n: { type: "integer", format: "int32", minimum: 1, maximum: 5 },
                big: { type: "integer", format: "int64", minimum: 0, exclusiveMinimum: true },
                small: { type: "number", maximum: 1, exclusiveMaximum: true },
                even: { type: "integer", multipleOf: 2, exclusiveMinimum: false },
                mode: { type: "string", enum: ["a", "b"], default: "a" },
                flag: { type: "boolean" },
                port: { "x-kubernetes-int-or-string": true },
                nullable: { type: "string", nullable: true },
                when: { type: "string", format: "date-time" },
                free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                map: { type: "object", additionalProperties: { type: "string" } },
                any: { type: "object", additionalProperties: true },
                either: { type: "string", anyOf: [{ maxLength: 1 }, { minLength: 3 }] },
                list: {
                  type: "array",
                  minItems: 1,
                  maxItems: 3,
                  "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["ns"],
                  items: {
                    type: "object",
                    required: ["ns"],
                    properties: { ns: { type: "string" }, sa: { type: "string" } },
                  },
                },
                set: {
                  type: "array",
                  "x-kubernetes-list-type": "set",
                  items: { type: "string" },
                },
              },
            },
            status: {
              type: "object",
              "x-kubernetes-preserve-unknown-fields": true,
              properties: { site: { type: "string" } },
            },
          },
        },
      },
    }],
  },
};

/** A widget to send. */
export function widget(name: string, spec: object = {}, metadata: object = {}, rest: object = {}) {
  return {
    apiVersion: "example.io/v1",
    kind: "Widget",
    metadata: { name, ...metadata },
    spec: { ref: { name: "orders" }, ...spec },
    ...rest,
  };
}

/** Reads events of a watch, one at a time. */
export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #buffer = "";

  constructor(response: Response) {
    if (response.body === null) throw new TypeError("the answer has no body");
    this.#reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next event as `TYPE name@version`, or `null` at the end. */
  async next(): Promise<string | null> {
    const event = await this.nextRaw();
    if (event === null) return null;
    const metadata = event.object.metadata ?? {};
    return `${event.type} ${metadata.name ?? event.object.reason ?? ""}@${
      metadata.resourceVersion ?? ""
    }`;
  }

  /** The next event, or `null` at the end. */
  async nextRaw(): Promise<{ type: string; object: Loose } | null> {
    while (true) {
      const end = this.#buffer.indexOf("\n");
      if (end >= 0) {
        const line = this.#buffer.slice(0, end);
        this.#buffer = this.#buffer.slice(end + 1);
        return JSON.parse(line);
      }
      const { done, value } = await this.#reader.read();
      if (done) return null;
      this.#buffer += value;
    }
  }

  /** Ends the watch from the client's side. */
  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

/** Starts a watch. */
export async function watch(
  fake: FakeCluster,
  path: string,
  query = "",
  signal?: AbortSignal,
): Promise<EventReader> {
  const response = await fake.fetch(
    `https://fake${path}?watch=true${query && `&${query}`}`,
    signal ? { signal } : {},
  );
  if (response.status !== 200) throw new Error(`watch answered ${response.status}`);
  return new EventReader(response);
}
