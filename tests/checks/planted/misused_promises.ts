/**
 * Promises in places that do not wait, one of each kind. The check of promises must find exactly the marked lines.
 *
 * Nothing runs this file.
 *
 * @module
 */

import type { Clock } from "../../../lib/runtime/clock.ts";

async function own(): Promise<boolean> {
  return await Promise.resolve(true);
}

interface Listener {
  on: () => void;
  off(): void;
}

/** A method that the interface lets nobody wait for. */
export class Eager implements Listener {
  on = () => {};
  async off() { // no-misused-promises
    await own();
  }
}

/** Hands promises to what does not wait for them, in every way that a type can tell. */
export function plant(clock: Clock): () => void {
  [1, 2].filter(async () => await own()); // no-misused-promises
  [1, 2].forEach(async () => { // no-misused-promises
    await own();
  });
  clock.timer(1, async () => { // no-misused-promises
    await own();
  });
  addEventListener("unload", async () => { // no-misused-promises
    await own();
  });
  const spread = { ...own() }; // no-misused-promises
  const listener: Listener = {
    on: async () => { // no-misused-promises
      await own();
    },
    off: () => {},
  };
  const variable: () => void = async () => { // no-misused-promises
    await own();
  };
  listener.on = variable;
  while (own()) { // no-misused-promises
    break;
  }
  Object.assign(listener, spread);
  return async () => { // no-misused-promises
    await own();
  };
}
