import type { AgentEvent } from '@plugboard/kernel';
import type { Extra } from '@plugboard/kernel/contracts';
import type { ExtrasSeal } from './sealed-extras.js';

/** Collects the extras of the last step of a turn. */
export class ExtrasCollector {
  readonly #seal: ExtrasSeal | undefined;
  #message: Extra | undefined;
  #calls: Record<string, Extra | null> = {};

  /** @param seal undefined if the client keeps no sealed extras. */
  constructor(seal: ExtrasSeal | undefined) {
    this.#seal = seal;
  }

  add(event: AgentEvent): void {
    if (event.type === 'step') [this.#message, this.#calls] = [undefined, {}];
    else if (event.type === 'extra') this.#message = event.extra;
    else if (event.type === 'tool-call') this.#calls[event.id] = event.extra ?? null;
  }

  /**
   * The sealed extras of a step that ends in calls of the client, which a model must think on from;
   * undefined if the connection attached nothing. Any other answer ends with its text: Claude Code
   * prints nothing of one that ends otherwise.
   */
  get sealed(): string | undefined {
    const calls = Object.values(this.#calls);
    if (!this.#seal || calls.length === 0 || (!this.#message && calls.every((extra) => extra === null))) return undefined;
    return this.#seal.seal({ message: this.#message, calls: this.#calls });
  }
}
