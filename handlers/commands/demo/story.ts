/**
 * The demo's story: two deployments that want to migrate a database of one group, and a planned failover that waits for
 * one of them. Each step is done on the running service, and checked.
 *
 * @module
 */

import { playPlannedFailover } from "./story/planned_failover.ts";
import { stepsOf, type StoryParts } from "./story/step.ts";
import { playTurns } from "./story/turns.ts";

export { StoryError, type StoryParts, type ToldStep } from "./story/step.ts";

/**
 * Plays the story.
 *
 * @throws {StoryError} A step did not go as it must. What it throws besides comes from a call that did not come back.
 */
export async function playStory(parts: StoryParts): Promise<void> {
  const step = stepsOf(parts);
  parts.begin("Part 1: two deployments take turns");
  await playTurns(parts, step);
  parts.begin("Part 2: a planned failover waits for a deployment");
  await playPlannedFailover(parts, step);
}
