/**
 * What the auxiliary listener shows: all groups, live, to many clients at the cost of one watch (deploy-api 14).
 *
 * The parts, and how a page or an endpoint is built on them:
 *
 * - {@linkcode LiveGroups} is the one view of the groups (and, with `leases`, of the Leases that they own) in the process.
 *   It follows them by watches, on every replica. Take it as {@linkcode GroupsView}: `keys()` and `sight(key)` show what
 *   there is, `subscribe(listener)` tells each change with how the group was before and is now. Whoever serves clients
 *   subscribes once for all of them. No client causes a call to the cluster.
 * - A WebSocket is an entry in the table of `lib/host/web_sockets.ts`: `{ name, admits, maxClients, open(client) }`. Its
 *   clients are `WebSocketClient`s with `put(key, text)` and `gone`: a newer message takes the place of one with the same
 *   key that has not left yet, so a slow client costs no memory. Origins are judged by `lib/host/origins.ts`
 *   (`allowedOrigins`, `sameOrigin`). Ping, slow clients, large frames and the end of the process are looked after there.
 * - {@linkcode StatusFeed} is such an entry's source for `/ws/status`; a page's feed has the same shape.
 * - The endpoints are in `handlers/http/auxiliary.ts`: a Hono application, to which a page is handed as another one.
 *   `handlers/commands/service/auxiliary.ts` puts them together on the listener.
 *
 * @module
 */

export type {
  ChangeCause,
  ChangeListener,
  GroupChange,
  GroupsView,
  WholeSight,
  WholeView,
} from "./live_groups.ts";
export { LiveGroups, type LiveGroupsParts } from "./live_groups.ts";
