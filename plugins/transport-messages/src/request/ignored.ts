import { headerSafeName, MAX_IGNORED_PARAMS } from '@plugboard/turn-routes';

/** What has no effect, for `x-ignored-params`: paths such as `tools.2.web_search`, each once. */
export class Ignored {
  readonly #names = new Set<string>();

  get names(): readonly string[] {
    return [...this.#names];
  }

  add(path: string): void {
    if (this.#names.size < MAX_IGNORED_PARAMS) this.#names.add(headerSafeName(path));
  }
}
