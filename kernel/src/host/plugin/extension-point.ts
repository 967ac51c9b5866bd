/**
 * How an extension point keeps its contributions:
 * - `by-name`: each has a unique name; a duplicate is an error that names both owners.
 * - `one`: exactly one; a second one is an error that names both owners.
 * - `in-order`: all of them, in the order of the configuration file.
 */
export type Discipline = 'by-name' | 'one' | 'in-order';

/** One fact about a contribution, for listings and the start banner. */
export interface Description {
  /** What the fact is. A reader uses the kinds it knows and prints or ignores the others. */
  readonly kind: string;
  /** What the text is about, for example `model`. */
  readonly label: string;
  /** For people. Never a secret. */
  readonly text: string;
}

export interface ExtensionPoint<T> {
  /** `owner.noun`, for example `hello.greeter`. Messages and listings print it. */
  readonly id: string;
  /** Identity. From `Symbol.for`, so that a second copy of the owner's package names the same point. */
  readonly key: symbol;
  readonly discipline: Discipline;
  /** Describes a contribution. Called whenever a listing is printed, perhaps before the server starts. */
  readonly describe?: ((value: T) => readonly Description[]) | undefined;
  toString(): string;
}

/**
 * A typed constant that plugins contribute to and read from. Its owner exports it; whoever imports it gets the type of the
 * contributions with it.
 *
 * ```ts
 * export const Greeters = defineExtensionPoint<Greeter>('hello.greeter', { discipline: 'by-name' });
 * ```
 */
export function defineExtensionPoint<T>(
  id: string,
  options: { readonly discipline: Discipline; readonly describe?: (value: T) => readonly Description[] },
): ExtensionPoint<T> {
  return Object.freeze({
    id,
    key: Symbol.for(`plugboard.extension-point.${id}`),
    discipline: options.discipline,
    describe: options.describe,
    toString: () => id,
  });
}

/** One value at a point, and who put it there. */
export interface Contribution<T> {
  readonly name: string;
  readonly value: T;
  /** The configuration entry that contributed it, for example `models.fast`. */
  readonly entry: string;
  /** What the entry says under the options that every entry of its section has, for example `timeout` of a tool. */
  readonly shared: Readonly<Record<string, unknown>>;
}

/**
 * A live view of a point: empty until all registrations are sealed, and from then on what is there now.
 * A turn that must not see a change takes `all()` once and keeps it.
 */
export interface Extensions<T> extends Iterable<Contribution<T>> {
  /** All contributions in the order of the configuration file. The array is never changed; a change makes a new one. */
  all(): readonly Contribution<T>[];
  /** The contribution of that name, or undefined. */
  get(name: string): T | undefined;
  /** The only contribution; throws an error that names the point and the likely cure where there is none. */
  one(): T;
}
