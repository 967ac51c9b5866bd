import { type AgentEvents, TurnError } from '@plugboard/kernel/contracts';

/** Characters of a summary: many times what it is asked to have. */
const MAX_SUMMARY = 64 * 1024;

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

  /** The summary; what there is of it until the turn has ended. */
  get summary(): string {
    return this.#summary.trim();
  }

  /**
   * @param events of the turn that writes the summary.
   * @throws TurnError if it is empty or too long.
   */
  async *sealed(events: AgentEvents): AgentEvents {
    for await (const batch of events) {
      for (const event of batch) if (event.type === 'text' && !event.isRefusal) this.#summary += event.text;
      if (this.#summary.length > MAX_SUMMARY) throw failed('too long a');
      const rest = batch.filter(({ type }) => type !== 'text' && type !== 'reasoning');
      const end = rest.at(-1);
      if (end?.type === 'finished') {
        if (this.summary === '') throw failed('an empty');
        yield [...rest.slice(0, -1), { type: 'text', text: await this.#seal(this.summary) }, end];
      } else if (rest.length > 0) yield rest;
    }
  }
}

/** @param what as in "an empty summary". */
function failed(what: string): TurnError {
  return new TurnError('model_failed', `The model connection returned ${what} summary.`);
}
