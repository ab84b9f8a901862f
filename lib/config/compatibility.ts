/**
 * Environment variables of the two reference programs, so that a deployment written for them works here: `AUTUMN_*`
 * (kubernetes-plugin 2 and 14) and `BLOODRAVEN_*` (deploy-api 15.1). What they set has a key of our own too.
 *
 * @module
 */
import { formatListenAddress, parseListenAddress } from "./listen_address.ts";
import { joinLayers, type Layer, readVariables, settingFromText } from "./env.ts";
import type { KeyTable } from "./keys.ts";

/** The prefix whose variables set the keys of the section `kubernetes`. */
export const KUBERNETES_PREFIX = "AUTUMN_KUBERNETES__";

/** Variables that set one key with their own text. An empty one sets nothing, as in the reference. */
export const SIMPLE_VARIABLES: Readonly<Record<string, string>> = {
  AUTUMN_ROLE: "host.role",
  BLOODRAVEN_DEPLOY_API_AUDIENCE: "deploy_api.audience",
  BLOODRAVEN_ESCROW_TLS_ADDR: "listen.tls",
  BLOODRAVEN_ESCROW_TLS_CERT_FILE: "tls.cert_file",
  BLOODRAVEN_ESCROW_TLS_KEY_FILE: "tls.key_file",
  BLOODRAVEN_WS_ALLOWED_ORIGINS: "auxiliary.ws_allowed_origins",
  BLOODRAVEN_WS_MAX_CLIENTS: "auxiliary.ws_max_clients",
};

/** Turns the deploy API on with `true` in any case; the reference takes every other text for off. */
export const DEPLOY_API_VARIABLE = "BLOODRAVEN_DEPLOY_API_ENABLED";

/** The host of `host.listen`. */
export const HOST_VARIABLE = "AUTUMN_SERVER__HOST";

/** The port of `host.listen`. */
export const PORT_VARIABLE = "AUTUMN_SERVER__PORT";

const LISTEN_KEY = "host.listen";

/**
 * Reads the compatibility variables.
 *
 * @param table The keys that there are.
 * @param variables Names and texts. Unknown names are ignored: most belong to the reference's other features.
 * @param sourceOf What to call a variable in an error and in `holdfast config`.
 * @param listen `host.listen` as the layers below have it: a host alone, or a port alone, changes only its part.
 */
export function readCompatibilityVariables(
  table: KeyTable,
  variables: ReadonlyMap<string, string>,
  sourceOf: (name: string) => string,
  listen: string,
): Layer {
  const simple = Object.entries(SIMPLE_VARIABLES).map(([name, key]) => {
    const text = variables.get(name) ?? "";
    return text === "" ? joinLayers([]) : settingFromText(table, key, text, sourceOf(name));
  });
  const enabled = (variables.get(DEPLOY_API_VARIABLE) ?? "").trim().toLowerCase();
  return joinLayers([
    ...simple,
    enabled === "" ? joinLayers([]) : settingFromText(
      table,
      "deploy_api.enabled",
      String(enabled === "true"),
      sourceOf(DEPLOY_API_VARIABLE),
    ),
    readListen(table, variables, sourceOf, listen),
    readVariables(table, variables, KUBERNETES_PREFIX, "kubernetes", sourceOf),
  ]);
}

function readListen(
  table: KeyTable,
  variables: ReadonlyMap<string, string>,
  sourceOf: (name: string) => string,
  listen: string,
): Layer {
  const host = variables.get(HOST_VARIABLE) ?? "";
  const port = variables.get(PORT_VARIABLE) ?? "";
  const names = [...(host === "" ? [] : [HOST_VARIABLE]), ...(port === "" ? [] : [PORT_VARIABLE])];
  if (names.length === 0) return joinLayers([]);
  const below = parseListenAddress(listen);
  const free = formatListenAddress({ ...below, ...(host === "" ? {} : { host }), port: 0 });
  const text = `${free.slice(0, -1)}${port === "" ? below.port : port}`;
  return settingFromText(table, LISTEN_KEY, text, names.map(sourceOf).join(" and "));
}
