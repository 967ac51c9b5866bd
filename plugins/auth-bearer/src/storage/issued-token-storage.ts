import { stat } from 'node:fs/promises';
import { type Extensions, type PluginContext, type PluginState, type SessionStore, SessionStores } from '@plugboard/kernel';
import { CommandError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { BearerConfig } from '../config.js';
import { FileStorage } from './file-storage.js';
import { StateStorage } from './state-storage.js';
import type { TokenStorage } from './token-storage.js';

/** The tokens file of an entry that names none. */
export const DEFAULT_FILE = './data/tokens.json';

/**
 * Chooses where the issued tokens of an entry are: in the file that it names; else in the session
 * store, if servers share it; else in a file.
 */
export class IssuedTokenStorage {
  readonly #path: string;
  readonly #file: FileStorage;
  /** Absent for an entry that names a file: it does not depend on the store. */
  readonly #shareable: { readonly stores: Extensions<SessionStore>; readonly state: PluginState } | undefined;
  /** Stays: a server has one store from its start on. */
  #chosen: TokenStorage | undefined;

  constructor(@inject(CONTEXT) ctx: PluginContext<BearerConfig>) {
    const { tokensFile } = ctx.config;
    this.#path = ctx.resolvePath(tokensFile ?? DEFAULT_FILE);
    this.#file = new FileStorage(this.#path, ctx.clock);
    if (tokensFile === undefined) this.#shareable = { stores: ctx.extensions(SessionStores), state: ctx.state };
  }

  /** Known when all entries are registered. @throws CommandError if there is no usable store */
  get current(): TokenStorage {
    this.#chosen ??= this.#choose();
    if (this.#chosen) return this.#chosen;
    throw new CommandError('the session store of the file has a mistake, and may have the tokens: run plugboard check');
  }

  /** The state that servers share, if the tokens are there. */
  get sharedState(): PluginState | undefined {
    this.#chosen ??= this.#choose();
    return this.#chosen?.isShared ? this.#shareable?.state : undefined;
  }

  #choose(): TokenStorage | undefined {
    if (!this.#shareable) return this.#file;
    const { stores, state } = this.#shareable;
    const [store] = stores.all();
    if (!store) return undefined;
    const { shared } = store.value;
    return shared ? new StateStorage(state, () => shared.now()) : this.#file;
  }

  /** The default file, if there is one and the tokens are elsewhere. */
  async unusedFile(): Promise<string | undefined> {
    if (this.sharedState === undefined) return undefined;
    const exists = await stat(this.#path).then(
      () => true,
      () => false,
    );
    return exists ? this.#path : undefined;
  }
}
