/**
 * Reading from what may never answer.
 *
 * @module
 */

/**
 * Waits for a promise, or until `signal` aborts. The work behind the promise is not stopped by it: pass the signal to that
 * work too. This holds the limit even where the work does not follow its signal.
 *
 * @param promise What is waited for.
 * @param signal Ends the wait: the promise that is returned then rejects with the signal's reason.
 * @param discard Gets what the promise brings when nobody waits for it any more.
 */
export function orAbort<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  discard: (value: T) => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    let waiting = true;
    const onAbort = () => {
      waiting = false;
      reject(signal.reason);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    promise.then((value) => {
      signal.removeEventListener("abort", onAbort);
      if (waiting) resolve(value);
      else discard(value);
    }, (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error);
    });
  });
}

/**
 * Reads an answer whole as UTF-8. The platform reads it in one piece: a reader of its stream would cost a buffer of 64 KiB for
 * each read, which was most of the memory under load.
 *
 * @param response An answer to a request with this `signal`, or one that aborts with it: that breaks its body off.
 * @param signal Ends the wait: the promise rejects with the signal's reason.
 */
export function readText(response: Response, signal: AbortSignal): Promise<string> {
  return orAbort(response.text(), signal);
}

/** Gives a stream up. What it thinks of that does not matter any more. */
export function abandon(stream: { cancel(): Promise<void> }): void {
  stream.cancel().catch(() => {});
}
