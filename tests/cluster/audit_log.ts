/**
 * The API server's own list of who asked for what.
 *
 * @module
 */

import { member } from "./raw_client.ts";

/** One request, as the audit log has it. */
export interface AuditEntry {
  readonly user: string;
  /** The RBAC verb. */
  readonly verb: string;
  /** The API group; empty for the core group. */
  readonly group: string;
  /** The plural, with `/subresource` where there is one; empty for a path that is no resource. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly requestUri: string;
  readonly status: number;
}

/** Reads the text of an audit log: one JSON event a line. The end of a watch is left out, since its start is there. */
export function parseAuditLog(text: string): AuditEntry[] {
  const entries: AuditEntry[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const event: unknown = JSON.parse(line);
    const verb = word(event, "verb");
    if (verb === "watch" && word(event, "stage") !== "ResponseStarted") continue;
    const subresource = word(event, "objectRef", "subresource");
    entries.push({
      user: word(event, "user", "username"),
      verb,
      group: word(event, "objectRef", "apiGroup"),
      resource: word(event, "objectRef", "resource") + (subresource ? `/${subresource}` : ""),
      namespace: word(event, "objectRef", "namespace"),
      name: word(event, "objectRef", "name"),
      requestUri: word(event, "requestURI"),
      status: Number(member(event, "responseStatus", "code") ?? 0),
    });
  }
  return entries;
}

function word(event: unknown, ...path: readonly string[]): string {
  const value = member(event, ...path);
  return typeof value === "string" ? value : "";
}
