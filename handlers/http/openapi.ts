/**
 * The deployment API as an OpenAPI 3.1 document, for who writes a client in another language.
 *
 * The schemas are those that the service and the client parse with. A test sends a request for every answer that the
 * document names, and finds no answer that it does not name.
 *
 * @module
 */

import { z } from "zod";
import { grantedSchema, groupViewSchema, renewedSchema } from "../../lib/client/answers.ts";
import { grantSchema, MAX_OPERATION_BYTES, renewSchema } from "./deploy_body.ts";
import type { SimpleError } from "./answers.ts";

/** Where `/deploy/v1` is when the service's own manifests are used as they are: deploy-api 2. */
export const DEFAULT_SERVER = "https://bloodraven.bloodraven.svc.cluster.local:8443/deploy/v1";

type Json = { readonly [member: string]: unknown };

const kind = z.enum(["migration", "failover-hold"]);
const holder = z.object({ expiresAt: z.string(), instance: z.string(), operationId: z.string() });
const generation = z.number().int().nonnegative();
const granted = grantedSchema.extend({ kind, operationId: z.string() });
const held = z.object({ error: z.literal("held"), holder });
const revoked = z.object({
  error: z.literal("revoked"),
  reason: z.enum(["topology_changed", "operator_revoked"]),
  topologyGeneration: generation.optional(),
});
const unstable = z.object({
  error: z.literal("unstable"),
  reason: z.string(),
  retryAfterSeconds: z.literal(1),
});

/** The schema of an answer. More members may come with a newer service, so that none is forbidden. */
function answerSchema(schema: z.ZodType): Json {
  return withoutDialect(z.toJSONSchema(schema, {
    override: ({ jsonSchema }) => {
      delete jsonSchema.additionalProperties;
    },
  }));
}

/** The schema of what is sent: the service refuses members that it does not know. */
function requestSchema(schema: z.ZodType): Json {
  return withoutDialect(z.toJSONSchema(schema, { io: "input" }));
}

/** OpenAPI 3.1 has a dialect for the whole document. */
function withoutDialect({ $schema: _, ...schema }: Json): Json {
  return schema;
}

const errors = (...names: readonly (SimpleError | "token_mismatch")[]) =>
  z.object({ error: z.enum(names) });

const RETRY_AFTER = {
  "Retry-After": { description: "Whole seconds", schema: { type: "integer", minimum: 1 } },
};

/** An answer: what it means, its body, and the headers that it has beside those of all. */
function reply(description: string, schema: z.ZodType | null, headers: Json = {}): Json {
  return {
    description,
    headers,
    ...(schema === null
      ? {}
      : { content: { "application/json": { schema: answerSchema(schema) } } }),
  };
}

/** The answers that any call may get. `forbidden` is wider for a call that shows a token of a lease. */
function common(forbidden: readonly ("forbidden" | "token_mismatch")[]): Json {
  return {
    401: reply("The token is missing, or is none for this service", errors("unauthorized")),
    403: reply(
      forbidden.length > 1
        ? "No database of the group names the caller, or the lease has another holder or token"
        : "No database of the group names the caller",
      errors(...forbidden),
    ),
    503: reply(
      "Ask again soon: this replica does not lead, or it could not decide",
      errors("not_leader", "unavailable"),
      RETRY_AFTER,
    ),
  };
}

const UNSTABLE = reply("The group is not stable: the reason says why", unstable, RETRY_AFTER);
const TOO_LARGE = reply("The body has more than 4,096 bytes", errors("request_too_large"));
const INVALID = reply(
  "The body, or a part of the path, has not its form",
  errors("invalid_request"),
);
const NO_GROUP = reply("There is no such group", errors("not_found"));

const FENCE = {
  "X-Lease-Fence": {
    description: "The fencing token of the lease: a later grant has a greater one",
    schema: { type: "string", pattern: "^[0-9]+$" },
  },
};

const path = (name: string, description: string, schema: Json): Json => ({
  name,
  in: "path",
  required: true,
  description,
  schema,
});

const GROUP = path("group", "The name of the MysqlFailoverGroup", {
  type: "string",
  maxLength: 253,
});
const HOLDER = [
  GROUP,
  path("kind", "The kind of the lease", requestSchema(kind)),
  path("operationId", "The id of the operation, 1 to 128 bytes", {
    type: "string",
    minLength: 1,
    maxLength: MAX_OPERATION_BYTES,
  }),
];

const body = (schema: z.ZodType): Json => ({
  required: true,
  content: { "application/json": { schema: requestSchema(schema) } },
});

/**
 * Describes the deployment API.
 *
 * @param version The version of the program.
 * @returns A document of OpenAPI 3.1. The same version gives the same document.
 */
export function describeDeployApi(version: string): Json {
  const forbidden = common(["forbidden"]);
  const holderErrors = common(["forbidden", "token_mismatch"]);
  return {
    openapi: "3.1.0",
    info: {
      title: "Deployment API",
      version,
      description:
        "A migration mutex for each group of databases, and holds on planned failover. Renew each lease every third of its " +
        "ttl, always with ttlSeconds. Count its end from the sending of the request. 404, 409, token_mismatch and another " +
        "topologyGeneration end the authority at once; 423 and 503 never extend it.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: DEFAULT_SERVER }],
    security: [{ serviceAccountToken: [] }],
    paths: {
      "/groups/{group}": {
        parameters: [GROUP],
        get: {
          operationId: "observe",
          summary: "Look at a group",
          responses: {
            200: reply("The group, and its active leases", groupViewSchema),
            ...forbidden,
            404: NO_GROUP,
            423: UNSTABLE,
          },
        },
      },
      "/groups/{group}/leases": {
        parameters: [GROUP],
        post: {
          operationId: "grant",
          summary: "Take a lease, or take it again",
          requestBody: body(grantSchema),
          responses: {
            200: reply("The holder's own lease, with a new token", granted, FENCE),
            201: reply("A new lease", granted, FENCE),
            400: INVALID,
            ...forbidden,
            404: NO_GROUP,
            409: reply(
              "Another operation holds it, or this operation was revoked",
              z.union([held, revoked]),
            ),
            413: TOO_LARGE,
            423: UNSTABLE,
          },
        },
      },
      "/groups/{group}/leases/{kind}/{operationId}": {
        parameters: HOLDER,
        put: {
          operationId: "renew",
          summary: "Renew a lease. Without ttlSeconds it ends in 5 seconds",
          requestBody: body(renewSchema),
          responses: {
            200: reply("Renewed", renewedSchema),
            400: INVALID,
            ...holderErrors,
            404: reply("There is no such lease, or it is over", errors("not_found")),
            409: reply("The operation was revoked", revoked),
            413: TOO_LARGE,
            423: UNSTABLE,
          },
        },
        delete: {
          operationId: "release",
          summary: "Give a lease back. It may be repeated",
          parameters: [{
            name: "X-Lease-Token",
            in: "header",
            required: false,
            description: "The token of the grant",
            schema: { type: "string" },
          }],
          responses: {
            204: reply("Nobody has it any more, at least not this operation", null),
            400: INVALID,
            ...holderErrors,
          },
        },
      },
    },
    components: {
      securitySchemes: {
        serviceAccountToken: {
          type: "http",
          scheme: "bearer",
          description: "A token of a service account for the audience bloodraven-deploy",
        },
      },
    },
  };
}
