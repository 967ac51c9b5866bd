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
  #inState: StateStorage | undefined;

  constructor(@inject(CONTEXT) ctx: PluginContext<BearerConfig>) {
    const { tokensFile } = ctx.config;
    this.#path = ctx.resolvePath(tokensFile ?? DEFAULT_FILE);
    this.#file = new FileStorage(this.#path, ctx.clock);
    if (tokensFile === undefined) this.#shareable = { stores: ctx.extensions(SessionStores), state: ctx.state };
  }

  /** Known when all entries are registered. @throws CommandError if there is no usable store */
  get current(): TokenStorage {
    if (this.#shareable?.stores.all().length === 0) {
      throw new CommandError('the session store of the file has a mistake, and may have the tokens: run plugboard check');
    }
    return this.#shared ?? this.#file;
  }

  /** The state that servers share, if the tokens are there. */
  get sharedState(): PluginState | undefined {
    return this.#shared && this.#shareable?.state;
  }

  get #shared(): StateStorage | undefined {
    if (!this.#shareable) return undefined;
    const { stores, state } = this.#shareable;
    const shared = stores.all()[0]?.value.shared;
    if (shared) this.#inState ??= new StateStorage(state, () => shared.now());
    return shared && this.#inState;
  }

  /** The default file, if there is one and the tokens are elsewhere. */
  async unusedFile(): Promise<string | undefined> {
    if (!this.#shared) return undefined;
    const exists = await stat(this.#path).then(
      () => true,
      () => false,
    );
    return exists ? this.#path : undefined;
  }
}
