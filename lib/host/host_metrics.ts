/**
 * The metrics of a host: those of the process, and a registry for each of its parts.
 *
 * @module
 */

import { Registry } from "prom-client";
import type { Logger } from "../runtime/log.ts";
import { errorClass } from "../runtime/error_class.ts";

/** The metrics of one part. */
export interface MetricsSource {
  /** Names the part in log lines. Not blank, and unique in a host. */
  readonly name: string;
  /** Its metrics. A scrape must do no I/O. */
  readonly registry: Registry;
}

/** All metrics that a scrape shows. */
export class MetricsSources {
  readonly #logger: Logger;
  readonly #sources = new Map<string, Registry>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** @throws {RangeError} The name is blank or taken. */
  add({ name, registry }: MetricsSource): void {
    if (name.trim() === "" || this.#sources.has(name)) {
      throw new RangeError(
        `Cannot add metrics as the 'name' of their source must be its own and not blank: current value is ${
          JSON.stringify(name)
        }`,
      );
    }
    this.#sources.set(name, registry);
  }

  /** The type of {@linkcode MetricsSources.render}, for its header. */
  get contentType(): string {
    return Registry.PROMETHEUS_CONTENT_TYPE;
  }

  /**
   * The text of a scrape, in the format of Prometheus. A source that throws is left out and logged, and so is one with a
   * metric that an earlier source has: a family that is there twice would spoil the whole scrape.
   */
  async render(): Promise<string> {
    const families = new Set<string>();
    const texts: string[] = [];
    for (const [source, registry] of this.#sources) {
      const names = registry.getMetricsAsArray().map(({ name }) => name);
      const twice = names.find((name) => families.has(name));
      if (twice !== undefined) {
        this.#logger.error("metrics left out, as an earlier source has one of them", {
          source,
          metric: twice,
        });
        continue;
      }
      try {
        texts.push(await registry.metrics());
      } catch (error) {
        this.#logger.error("metrics left out", { source, error: errorClass(error) });
        continue;
      }
      for (const name of names) families.add(name);
    }
    return texts.map((text) => text.trimEnd()).filter((text) => text !== "").join("\n\n") + "\n";
  }
}
