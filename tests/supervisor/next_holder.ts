/**
 * Who gets the lease next, and whether the first one had let go of everything by then.
 *
 * @module
 */

import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import {
  type Authority,
  type Fetch,
  HoldfastClient,
  httpsFetch,
  type LeaseOptions,
} from "../../lib/client/mod.ts";
import type { EffectiveSettings } from "../../lib/client/settings.ts";
import { livingOf } from "../handlers/commands/run_process.ts";

/** A lease that the next one got. */
export interface NextGrant {
  readonly lease: Authority;
  /** When the request that was granted was sent, in milliseconds since 1970: the grant is later. */
  readonly sentMs: number;
  /** When the answer was there. */
  readonly answeredMs: number;
  /** The processes of the first one's group that still ran right before that request was sent. */
  readonly living: readonly number[];
}

/**
 * Waits for the lease, and looks at the first one's processes right before each request for it.
 *
 * @param group The process group of the first one.
 */
export async function takeNext(
  { url, caFile, tokenFile, group, instance }: EffectiveSettings,
  processGroup: number,
  options: Partial<LeaseOptions> = {},
): Promise<NextGrant> {
  const send = httpsFetch(await Deno.readTextFile(caFile));
  let living: readonly number[] = [];
  let sentMs = NaN;
  const fetch: Fetch = async (to, init) => {
    if (init.method === "POST") {
      living = await livingOf(processGroup);
      sentMs = Date.now();
    }
    return await send(to, init);
  };
  const client = new HoldfastClient({
    url,
    group,
    instance,
    token: () => Deno.readTextFile(tokenFile),
    fetch,
    clock: systemClock,
    entropy: systemEntropy,
  });
  const operationId = crypto.randomUUID();
  const lease = await client.acquire({ operationId, waitSeconds: 60, ...options });
  return { lease, sentMs, answeredMs: Date.now(), living };
}

/** The settings of the other database of the same group. */
export function otherInstance(settings: EffectiveSettings): EffectiveSettings {
  return { ...settings, instance: settings.instance.replace(/^tenant/, "billing") };
}
