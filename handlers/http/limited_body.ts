/**
 * Bodies are read up to a limit and no further, so that no caller chooses how much memory a request takes.
 *
 * @module
 */

/**
 * Reads a body.
 *
 * @param maxBytes The most bytes that it may have.
 * @returns Its text, or `null` when there is more.
 * @throws The client went away, or its stream broke.
 */
export async function readLimited(request: Request, maxBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) return null;
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return new TextDecoder().decode(bytes);
}

/** The value of a JSON text; `undefined`, which no schema takes, when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
