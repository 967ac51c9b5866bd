import { hash, randomBytes } from 'node:crypto';
import { type Extensions, type PluginContext, type SessionStore, SessionStores } from '@plugboard/kernel';
import { SessionExists, type SessionId, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { invalidValue } from '@plugboard/openai-protocol';
import { openText, sealText } from '@plugboard/turn-routes';
import type { OpenResponsesConfig } from '../config.js';
import { isSummary } from '../items/input-messages.js';
import type { InputItem } from '../request/request.js';

/** Bytes. */
const KEY_LENGTH = 32;
/** The session that the server's own key is kept with. No credential belongs to its project. */
const SESSION: SessionId = { project: '', agent: '', key: '@plugboard/open-responses' };
const DOCUMENT = 'summary-key';

/** Reads the content of a compaction item. @throws ProtocolError 400 */
export type ReadSummary = (content: string, param: string) => string;

/**
 * Encrypts and decrypts the summaries in compaction items. The key is the option `summaryKey`, or
 * one that the server makes and keeps in its session store, so that items work after a restart.
 */
export class SummaryTokens {
  readonly #stores: Extensions<SessionStore>;
  readonly #configured: string | undefined;
  #key: Promise<Uint8Array> | undefined;

  constructor(@inject(CONTEXT) { extensions, config }: PluginContext<OpenResponsesConfig>) {
    this.#stores = extensions(SessionStores);
    this.#configured = config.summaryKey;
  }

  /**
   * @param project the project of the caller, the only one that can use the token.
   *
   * @throws TurnError
   */
  async seal(summary: string, project: string): Promise<string> {
    const key = await this.#loadKey();
    // A session that is used is not deleted as old.
    if (this.#configured === undefined) await storeCall(() => this.#stores.one().setMetadata(SESSION, {}));
    return sealText(summary, key, project);
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
    this.#key ??= storeCall(() => keyIn(this.#stores.one()));
    this.#key.catch(() => {
      this.#key = undefined; // the next request tries again
    });
    return this.#key;
  }
}

/** The key that a store keeps. It is made when it is needed first. */
async function keyIn(store: SessionStore): Promise<Uint8Array> {
  const stored = async () => (await store.documents.get(SESSION.project, DOCUMENT))?.text;
  let text = await stored();
  if (text === undefined) {
    await store.create(SESSION, { metadata: {}, messages: [] }).catch((error) => {
      if (!(error instanceof SessionExists)) throw error; // another server has created it
    });
    await store.documents.put(SESSION, DOCUMENT, randomBytes(KEY_LENGTH).toString('base64'));
    text = (await stored()) ?? '';
  }
  const key = Buffer.from(text, 'base64');
  if (key.length !== KEY_LENGTH) throw new Error('the session store did not keep the key of summaries');
  return key;
}

async function storeCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new TurnError('store_failed', 'The session store failed.', { cause });
  }
}
