/**
 * How an extension point keeps its contributions:
 * - `by-name`: each has a unique name; a duplicate is an error that names both owners.
 * - `one`: exactly one; a second one is an error that names both owners.
 * - `in-order`: all of them, in the order of the configuration file.
 *
 * @public
 */
export type Discipline = 'by-name' | 'one' | 'in-order';

/** What a member of a contribution must be. @public */
export type MemberType = 'function' | 'object' | 'array' | 'string' | 'number' | 'boolean';

/** The names of the members of a type, with `?` behind the optional ones. @public */
export type ShapeOf<T> = T extends (...args: never[]) => unknown
  ? 'function'
  : { readonly [K in keyof T & string as undefined extends T[K] ? `${K}?` : K]?: MemberType };

/** One fact about a contribution, for listings and the start banner. @public */
export interface Description {
  /** What the fact is. A reader uses the kinds it knows and prints or ignores the others. */
  readonly kind: string;
  /** What the text is about, for example `language`. */
  readonly label: string;
  /** For people. Never a secret. */
  readonly text: string;
}

/** A place where plugins contribute values of one type. Made by `defineExtensionPoint`. @public */
export interface ExtensionPoint<T> {
  /** `owner.noun`, for example `hello.greeter`. Messages and listings print it. */
  readonly id: string;
  /** Identity, from `Symbol.for`: a second copy of the owner's package means the same point. */
  readonly key: symbol;
  readonly discipline: Discipline;
  /** Describes a contribution for listings. May be called before the server starts. */
  readonly describe?: ((value: T) => readonly Description[]) | undefined;
  /** What contributions must be: `function`, or the types of their members, `?` for optional. */
  readonly shape?: 'function' | Readonly<Record<string, MemberType>> | undefined;
  /**
   * What to add to the configuration if there are contributions, but no entry reads the point:
   * `add greet: {} under plugins`. It ends a warning. Without it, there is none.
   */
  readonly unread?: string | undefined;
  toString(): string;
}

/**
 * Defines an extension point: a typed constant that plugins contribute to and read from. The
 * package that owns the point exports it, and importing it brings the type of its contributions.
 *
 * ```ts
 * export const Greeters = defineExtensionPoint<Greeter>('hello.greeter', { discipline: 'by-name' });
 * ```
 *
 * @public
 */
export function defineExtensionPoint<T>(
  id: string,
  options: {
    readonly discipline: Discipline;
    readonly describe?: (value: T) => readonly Description[];
    /** Checked when a value is contributed, so that the error names the plugin at fault. */
    readonly shape?: ShapeOf<T>;
    /** What to add to the configuration if no entry reads the contributions. */
    readonly unread?: string;
  },
): ExtensionPoint<T> {
  return Object.freeze({
    id,
    key: Symbol.for(`plugboard.extension-point.${id}`),
    discipline: options.discipline,
    describe: options.describe,
    shape: options.shape as ExtensionPoint<T>['shape'],
    unread: options.unread,
    toString: () => id,
  });
}

/** A value at an extension point, and the entry that contributed it. @public */
export interface Contribution<T> {
  readonly name: string;
  readonly value: T;
  /** The configuration entry that contributed it, for example `greeters.hello`. */
  readonly entry: string;
  /** The entry's values of the options that its section shares, for example `timeout`. */
  readonly shared: Readonly<Record<string, unknown>>;
}

/**
 * A live view of an extension point: empty while plugins register, then always the current
 * contributions. Work that must not see a change calls `all()` once and keeps the array.
 *
 * @public
 */
export interface Extensions<T> extends Iterable<Contribution<T>> {
  /** All contributions, in the order of the file. A change creates a new array. */
  all(): readonly Contribution<T>[];
  /** The contribution with that name, or undefined. */
  get(name: string): T | undefined;
  /** The only contribution. @throws HostError `POINT_EMPTY` if there is none. */
  one(): T;
}
