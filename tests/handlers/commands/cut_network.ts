/**
 * A network between a client and a service that a test can cut in each direction. What is cut is swallowed: both ends
 * believe that the connection is there.
 *
 * @module
 */

/** A proxy for TCP on a free port of this machine. */
export class CutNetwork implements AsyncDisposable {
  /** Swallows what the client sends. */
  requestsCut = false;
  /** Swallows what the service answers. */
  answersCut = false;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open = new Set<Deno.TcpConn>();
  readonly #pumps = new Set<Promise<void>>();
  readonly #accepting: Promise<void>;

  /** @param service `https://HOST:PORT` */
  constructor(service: string) {
    const { hostname, port } = new URL(service);
    this.#accepting = this.#accept({ hostname, port: Number(port) });
  }

  /** The address of the service by way of this network. */
  get url(): string {
    return `https://127.0.0.1:${this.#listener.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
    for (const connection of this.#open) this.#close(connection);
    await Promise.all(this.#pumps);
  }

  async #accept(service: { hostname: string; port: number }): Promise<void> {
    try {
      for await (const client of this.#listener) {
        const upstream = await Deno.connect(service);
        this.#open.add(client).add(upstream);
        this.#keep(this.#pump(client, upstream, () => this.requestsCut));
        this.#keep(this.#pump(upstream, client, () => this.answersCut));
      }
    } catch {
      // The listener was closed.
    }
  }

  #keep(pump: Promise<void>): void {
    this.#pumps.add(pump);
    void pump.then(() => this.#pumps.delete(pump));
  }

  async #pump(from: Deno.TcpConn, to: Deno.TcpConn, isCut: () => boolean): Promise<void> {
    const buffer = new Uint8Array(16_384);
    try {
      for (;;) {
        const size = await from.read(buffer);
        if (size === null) break;
        for (let at = 0; at < size && !isCut();) at += await to.write(buffer.subarray(at, size));
      }
    } catch {
      // One end is gone.
    }
    if (isCut()) return;
    this.#close(from);
    this.#close(to);
  }

  #close(connection: Deno.TcpConn): void {
    if (this.#open.delete(connection)) connection.close();
  }
}
