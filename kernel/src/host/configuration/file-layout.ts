import type { Synonyms } from '../base/nearest.js';
import type { JsonSchema } from '../options/schema-types.js';
import type { StateSource } from '../plugin/state.js';

/** The sections of a file. The host owns only `log`; the caller of `compose` defines the others. */
export interface FileLayout {
  readonly sections: Readonly<Record<string, SectionLayout>>;
  /** Options that are never secret, even if a variable provides the value: `host`. */
  readonly plainOptions: readonly string[];
  /** Names of fields that are secret in every log line: `password`. */
  readonly secretFields: readonly string[];
  /** Where plugins' own state is kept. Without it, they have none. */
  readonly state?: StateSource;
  /** What other programs call the keys of the file, for suggestions. */
  readonly synonyms: Synonyms;
}

export interface SectionLayout {
  /** What the section contains, for editors. */
  readonly description?: string;
  /** `use: x` means `@plugboard/<prefix>-x`, or `@plugboard/x` if the prefix is empty. */
  readonly prefix: string;
  /** `map`: named entries. `single`: the section is one entry. */
  readonly shape: 'map' | 'single';
  /** The point that every entry of the section contributes to, and no entry of another section. */
  readonly provides?: { readonly point: string /** With its article. */; readonly name: string };
  /** The plugins of entries with these options, for an entry without a `use`. */
  readonly usual?: Readonly<Record<string, string>>;
  /** The file must have the section. */
  readonly required?: boolean;
  /** The section may be absent but not empty, and its entries cannot be `optional`. */
  readonly strict?: boolean;
  /** Words that are valid in place of the entries: `auth: open`. */
  readonly literals?: readonly string[];
  /** The entry to use if a `single` section is absent. */
  readonly fallback?: Readonly<Record<string, unknown>>;
  /** `fallback` is only used if a plugin of the file needs the section. */
  readonly onDemand?: boolean;
  /** Options that every entry of the section accepts in addition to its plugin's own. */
  readonly shared?: SharedOptions;
  /** The options of a `single` entry are keys of the file's top level, not keys beside `use`. */
  readonly topLevelOptions?: boolean;
  /** What cannot change while the server runs: the whole entry, or the plugin that serves it. */
  readonly fixed?: 'entry' | 'plugin';
}

type SharedOptions = Readonly<Record<string, JsonSchema>>;
