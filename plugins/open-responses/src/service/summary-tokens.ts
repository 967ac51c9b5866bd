import { hash } from 'node:crypto';
import type { PluginContext, PluginState } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { invalidValue } from '@plugboard/openai-protocol';
import { openText, ownKey, sealText } from '@plugboard/turn-routes';
import type { OpenResponsesConfig } from '../config.js';
import { isSummary } from '../items/input-messages.js';
import type { InputItem } from '../request/request.js';

/** Under which the key is kept with the state of the entry. */
const KEY = 'summary-key';

/** Reads the content of a compaction item. @throws ProtocolError 400 */
type ReadSummary = (content: string, param: string) => string;

/**
 * Encrypts and decrypts the summaries in compaction items. The key is the option `summaryKey`, or
 * one that the server makes and keeps with its state, so that items work after a restart, and on
 * every server with the same store.
 */
export class SummaryTokens {
  readonly #state: PluginState;
  readonly #configured: string | undefined;
  #key: Promise<Uint8Array> | undefined;

  constructor(@inject(CONTEXT) { state, config }: PluginContext<OpenResponsesConfig>) {
    this.#state = state;
    this.#configured = config.summaryKey;
  }

  /**
   * @param project the project of the caller, the only one that can use the token.
   *
   * @throws TurnError
   */
  async seal(summary: string, project: string): Promise<string> {
    return sealText(summary, await this.#loadKey(), project);
  }

  /** A function that reads the compaction items among these. @throws TurnError */
  async reader(items: readonly InputItem[], project: string): Promise<ReadSummary> {
    const key = items.some((item) => isSummary(item)) ? await this.#loadKey() : new Uint8Array();
    return (content, param) => {
      const summary = openText(content, key, project);
      if (summary === undefined) throw invalidValue(param, 'it is not the content of a compaction item of this server');
      return summary;
    };
  }

  #loadKey(): Promise<Uint8Array> {
    if (this.#configured !== undefined) return Promise.resolve(hash('sha256', this.#configured, 'buffer'));
    this.#key ??= storeCall(() => ownKey(this.#state, KEY));
    this.#key.catch(() => {
      this.#key = undefined; // the next request tries again
    });
    return this.#key;
  }
}

async function storeCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new TurnError('store_failed', 'The session store failed.', { cause });
  }
}
