/** What tests of a host share: a machine, a configuration, and a look at answers. */

import { type Config, configSchema } from "../../lib/config/schema.ts";
import { TestClock, TestSystem } from "../../lib/testing/mod.ts";

/** A configuration with only what a test says about hosts. */
export function hostConfig(host: Record<string, unknown> = {}): Config {
  return configSchema.parse({ host: { listen: "127.0.0.1:0", ...host } });
}

/** A test clock and its machine. */
export function machine(env: Record<string, string> = {}) {
  const clock = new TestClock();
  return { clock, system: new TestSystem({ clock, env }) };
}

/** The status of an answer, and its body. */
export async function answerOf(answer: Promise<Response> | Response): Promise<[number, unknown]> {
  const response = await answer;
  const text = await response.text();
  return [
    response.status,
    response.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : text,
  ];
}
