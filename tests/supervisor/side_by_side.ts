/**
 * Scenarios that wait for processes and for the end of leases, played at the same time.
 *
 * @module
 */

/** A scenario. The name is a sentence. */
export type Scenario = readonly [name: string, play: () => Promise<void>];

/**
 * Plays scenarios at once, and reports each as a step. Give each a group of its own.
 *
 * What one of them opens while another one's step is looked at is none of its own, so the leak sanitizers look at the whole
 * test and not at the steps.
 */
export async function playSideBySide(
  context: Deno.TestContext,
  scenarios: readonly Scenario[],
): Promise<void> {
  const playing = scenarios.map(([name, play]) => {
    const played = play();
    // Its step tells of it.
    played.catch(() => {});
    return { name, fn: () => played, sanitizeOps: false, sanitizeResources: false };
  });
  for (const step of playing) await context.step(step);
}
