import type { ConfiguredEntry, ReadEntry } from '../configuration/entry.js';
import { type Configuration, keysWhere } from '../configuration/read-configuration.js';
import type { Registered, RevisionView } from './register.js';
import { Registry } from './registry.js';

/**
 * One revision of the configuration: what it says, and the entries registered under it. A reload
 * makes the next one.
 *
 * Work that must not see the next revision pins the one it began with. An entry that left with a
 * reload is stopped when no revision that had it is pinned.
 */
export class Revision implements RevisionView {
  readonly registry = new Registry();
  /** The registered entries in start order. */
  order: readonly Registered[] = [];
  /** The optional entries that could not be registered or started, by their ids. */
  readonly failed = new Set<string>();
  /** Why optional entries could not be registered, by their ids. */
  readonly #disabled = new Map<string, string>();
  #pins = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  /** @param number counts from 1. */
  constructor(
    readonly number: number,
    readonly configuration: Configuration,
  ) {}

  entries(section: string, where?: Readonly<Record<string, unknown>>): readonly string[] {
    return keysWhere(this.configuration.contents, section, where);
  }

  /** Disables an optional entry that could not be registered. */
  disable(id: string, reason: string): void {
    this.#disabled.set(id, reason);
    this.failed.add(id);
  }

  /** Removes the contributions of an optional entry that did not start. */
  fail(id: string): void {
    this.registry.disable(id);
    this.failed.add(id);
  }

  /** Why an entry is disabled: by the file, or because it could not be registered. */
  reasonDisabled({ id, disabled }: ReadEntry): string | undefined {
    return disabled ?? this.#disabled.get(id);
  }

  /** The entries that are not disabled. */
  get enabled(): readonly ConfiguredEntry[] {
    return this.configuration.contents.entries.filter((entry) => this.reasonDisabled(entry) === undefined);
  }

  pin(): () => void {
    this.#pins++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#pins--;
      if (this.#pins === 0) this.#idle?.resolve();
    };
  }

  get isPinned(): boolean {
    return this.#pins > 0;
  }

  /** Resolves when the last pin is released. Call it once another revision is the current one. */
  idle(): Promise<void> {
    if (this.#pins === 0) return Promise.resolve();
    this.#idle ??= Promise.withResolvers();
    return this.#idle.promise;
  }
}
