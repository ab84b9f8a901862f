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
 * Reads a body whole as UTF-8.
 *
 * @param body The body; `null` reads as an empty text.
 * @param signal Breaks the reading off: the body is cancelled, and the promise rejects with the signal's reason.
 */
export async function readText(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let whole = false;
  try {
    for (;;) {
      const { done, value } = await orAbort(reader.read(), signal);
      if (done) {
        whole = true;
        return text + decoder.decode();
      }
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    if (!whole) abandon(reader);
  }
}

/** Gives a stream up. What it thinks of that does not matter any more. */
export function abandon(stream: { cancel(): Promise<void> }): void {
  stream.cancel().catch(() => {});
}
