/**
 * A network between clients and services: one address in front of several, as a Service of Kubernetes is, which a test can
 * cut in each direction. What is cut is swallowed: both ends believe that the connection is there.
 *
 * @module
 */

/** A proxy for TCP on a free port of this machine. */
export class CutNetwork implements AsyncDisposable {
  /** Swallows what the client sends. */
  requestsCut = false;
  /** Swallows what the service answers. */
  answersCut = false;
  /** The addresses behind this one. Connections go to them in turn, and past one that refuses. */
  services: readonly string[];
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open = new Set<Deno.TcpConn>();
  readonly #pumps = new Set<Promise<void>>();
  readonly #accepting: Promise<void>;
  #turn = 0;

  /** @param services `https://HOST:PORT` */
  constructor(...services: readonly string[]) {
    this.services = services;
    this.#accepting = this.#accept();
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

  async #accept(): Promise<void> {
    try {
      for await (const client of this.#listener) {
        const upstream = await this.#connect();
        if (upstream === null) {
          client.close();
          continue;
        }
        this.#open.add(client).add(upstream);
        this.#keep(this.#pump(client, upstream, () => this.requestsCut));
        this.#keep(this.#pump(upstream, client, () => this.answersCut));
      }
    } catch {
      // The listener was closed.
    }
  }

  async #connect(): Promise<Deno.TcpConn | null> {
    const { services } = this;
    for (let tries = 0; tries < services.length; tries++) {
      const { hostname, port } = new URL(services[this.#turn++ % services.length] ?? "");
      try {
        return await Deno.connect({ hostname, port: Number(port) });
      } catch {
        // This one is not there. Perhaps another is.
      }
    }
    return null;
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
