import { setImmediate } from 'node:timers/promises';
import type { Clock } from '@plugboard/kernel';
import { Registry } from 'prom-client';

/** Milliseconds in which scrapes get the same page. */
const MAX_AGE = 1_000;

/**
 * The page of all metrics, as Prometheus text. It is written once a second at most, however many
 * ask for it, and one metric after the other, so that requests are served in between.
 */
export class Page {
  static readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #registry: Registry;
  readonly #clock: Clock;
  #written: { readonly at: number; readonly text: Promise<Buffer> } | undefined;

  constructor(registries: Registry[], clock: Clock) {
    this.#registry = Registry.merge(registries);
    this.#clock = clock;
  }

  read(): Promise<Buffer> {
    const now = this.#clock.monotonic();
    if (this.#written && now - this.#written.at < MAX_AGE) return this.#written.text;
    const text = this.#write();
    this.#written = { at: now, text };
    return text;
  }

  async #write(): Promise<Buffer> {
    const parts: string[] = [];
    for (const { name } of this.#registry.getMetricsAsArray()) {
      parts.push(await this.#registry.getSingleMetricAsString(name), '\n');
      await setImmediate();
    }
    return Buffer.from(parts.join(''));
  }
}
