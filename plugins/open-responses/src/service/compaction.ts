import type { AgentEvent } from '@plugboard/kernel';
import { type AgentEvents, TurnError } from '@plugboard/kernel/contracts';

/** Characters of a summary: many times what it is asked to have. */
const MAX_SUMMARY = 64 * 1024;

/** Collects the summary that a turn writes. */
export class SummaryText {
  #text = '';

  /** @throws TurnError if it is too long. */
  add(event: AgentEvent): void {
    if (event.type === 'text' && !event.isRefusal) this.#text += event.text;
    if (this.#text.length > MAX_SUMMARY) throw new TurnError('model_failed', 'The summary of the model connection is too long.');
  }

  /** The whole summary. @throws TurnError if there is none. */
  finish(): string {
    const text = this.#text.trim();
    if (text === '') throw new TurnError('model_failed', 'The model connection returned an empty summary.');
    return text;
  }
}

/**
 * The summary that a response is asked for by a `compaction_trigger` item. Its turn says the sealed
 * summary, as one text.
 */
export class Compaction {
  readonly #seal: (summary: string) => Promise<string>;
  #summary = '';

  constructor(seal: (summary: string) => Promise<string>) {
    this.#seal = seal;
  }

  /** The summary; empty until it is complete. */
  get summary(): string {
    return this.#summary;
  }

  /** @param events of the turn that writes the summary. */
  async *sealed(events: AgentEvents): AgentEvents {
    const summary = new SummaryText();
    for await (const batch of events) {
      const rest = batch.filter(({ type }) => type !== 'text' && type !== 'reasoning');
      for (const event of batch) summary.add(event);
      const end = rest.at(-1);
      if (end?.type !== 'finished') {
        if (rest.length > 0) yield rest;
        continue;
      }
      this.#summary = summary.finish();
      yield [...rest.slice(0, -1), { type: 'text', text: await this.#seal(this.#summary) }, end];
    }
  }
}
