import type { DefinedPlugin } from './plugin.js';
import type { JsonSchema } from './schema-types.js';

/**
 * How a configuration file is cut into sections. The host knows no section but its own `log`: whoever runs it says which
 * there are, and what their entries are called.
 */
export interface FileLayout {
  readonly sections: Readonly<Record<string, SectionLayout>>;
  /** Plugins that are part of every composition. The properties of their option schemas are keys of the file's top level. */
  readonly bundled: readonly DefinedPlugin[];
  /** Options that are nothing to hide from the logs though a variable filled them in, by their keys: `host`, `port`. */
  readonly plainOptions: readonly string[];
}

export interface SectionLayout {
  /** `x` as an entry's `use` means the package `@plugboard/<prefix>-x`. */
  readonly prefix: string;
  /** `map`: named entries. `single`: the section is itself the one entry. */
  readonly shape: 'map' | 'single';
  /** Whether the file must have the section. */
  readonly required?: boolean;
  /** The section may be absent, but must not be empty; and no entry of it may be `optional`. */
  readonly strict?: boolean;
  /** Words that may stand in place of the entries. */
  readonly literals?: readonly string[];
  /** The entry of a `single` section that is absent. */
  readonly fallback?: Readonly<Record<string, unknown>>;
  /** Options that every entry of the section has beside its plugin's own. */
  readonly shared?: SharedOptions;
}

export type SharedOptions = Readonly<Record<string, JsonSchema>>;
