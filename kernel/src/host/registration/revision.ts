import { type Configuration, keysWhere } from '../configuration/read-configuration.js';
import type { Registered, RevisionView } from './register.js';
import { Registry } from './registry.js';

/**
 * One revision of the configuration: what it says, and the entries registered under it. A reload
 * makes the next one.
 *
 * Work that must not see the next revision holds the one it began with. An entry that left with a
 * reload is stopped when no revision that had it is held.
 */
export class Revision implements RevisionView {
  readonly registry = new Registry();
  /** The registered entries in start order. */
  order: readonly Registered[] = [];
  #holders = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  /** @param number counts from 1. */
  constructor(
    readonly number: number,
    readonly configuration: Configuration,
  ) {}

  entries(section: string, where?: Readonly<Record<string, unknown>>): readonly string[] {
    return keysWhere(this.configuration.contents, section, where);
  }

  hold(): () => void {
    this.#holders++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#holders--;
      if (this.#holders === 0) this.#idle?.resolve();
    };
  }

  get isHeld(): boolean {
    return this.#holders > 0;
  }

  /**
   * Resolves when the last hold has ended. Call it after another revision has become the current
   * one.
   */
  idle(): Promise<void> {
    if (this.#holders === 0) return Promise.resolve();
    this.#idle ??= Promise.withResolvers();
    return this.#idle.promise;
  }
}
