import { hash } from 'node:crypto';
import type { PluginContext } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { invalidValue } from '@plugboard/openai-protocol';
import { OwnKey, openText, sealText } from '@plugboard/turn-routes';
import type { OpenResponsesConfig } from '../config.js';
import { isSummary } from '../items/input-messages.js';
import type { InputItem } from '../request/request.js';

/**
 * Encrypts and decrypts the summaries in compaction items. The key is the option `summaryKey`, or
 * one that the server keeps with its state.
 */
export class SummaryTokens {
  readonly #configured: string | undefined;
  readonly #own: OwnKey;

  constructor(@inject(CONTEXT) { state, config }: PluginContext<OpenResponsesConfig>) {
    this.#configured = config.summaryKey;
    this.#own = new OwnKey(state, 'summary-key');
  }

  /**
   * @param project the project of the caller, the only one that can use the token.
   *
   * @throws TurnError
   */
  async seal(summary: string, project: string): Promise<string> {
    return sealText(summary, await this.#loadKey(), project);
  }

  /**
   * A function that reads the content of the compaction items among these; it throws a
   * `ProtocolError` 400.
   *
   * @throws TurnError
   */
  async reader(items: readonly InputItem[], project: string): Promise<(content: string, param: string) => string> {
    const key = items.some((item) => isSummary(item)) ? await this.#loadKey() : new Uint8Array();
    return (content, param) => {
      const summary = openText(content, key, project);
      if (summary === undefined) throw invalidValue(param, 'it is not the content of a compaction item of this server');
      return summary;
    };
  }

  async #loadKey(): Promise<Uint8Array> {
    if (this.#configured !== undefined) return hash('sha256', this.#configured, 'buffer');
    try {
      return await this.#own.load();
    } catch (cause) {
      throw new TurnError('store_failed', 'The session store failed.', { cause });
    }
  }
}
