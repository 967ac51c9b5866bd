/**
 * The part of JSON Schema (draft 2020-12) that option schemas use. A plugin's schema is the single
 * source of truth of its options: ajv validates with it, `ctx.config` is typed from it, editors
 * complete with it, and the README's settings list is generated from it.
 *
 * @public
 */
export interface JsonSchema {
  readonly type?: SchemaType | readonly SchemaType[];
  readonly description?: string;
  readonly default?: unknown;
  /** A file that sets the option gets a warning with the description: what to set instead. */
  readonly deprecated?: boolean;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: { readonly [name: string]: JsonSchema };
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  /**
   * `duration`: `30s` · `size`: `20mb` · `url` · `date`: ISO 8601 · `package`: an npm package that
   * the plugin loads, or the path of a module, which must be installed.
   */
  readonly format?: 'duration' | 'size' | 'url' | 'date' | 'package';
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  /** The value is never shown: not in a log, an error or a listing. */
  readonly secret?: boolean;
  /**
   * The text is the name of an entry of this section of the file, or a key of this map of its top
   * level: `greeters`. Editors complete it, `examples` included. `check` finds unknown names.
   */
  readonly nameOf?: string;
}

/** A `type` of JSON Schema. @public */
export type SchemaType = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null';

/**
 * The type of a value that a schema (`as const`) accepts, after defaults are filled in: a property
 * is optional only if it is neither required nor has a default.
 *
 * @public
 */
export type Infer<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer B)[] }
      ? Infer<B>
      : S extends { readonly oneOf: readonly (infer B)[] }
        ? Infer<B>
        : S extends { readonly type: readonly (infer T)[] }
          ? InferType<T, S>
          : S extends { readonly type: infer T }
            ? InferType<T, S>
            : unknown;

type InferType<T, S> = T extends 'string'
  ? string
  : T extends 'number' | 'integer'
    ? number
    : T extends 'boolean'
      ? boolean
      : T extends 'null'
        ? null
        : T extends 'array'
          ? S extends { readonly items: infer I }
            ? readonly Infer<I>[]
            : readonly unknown[]
          : T extends 'object'
            ? InferObject<S>
            : never;

type InferObject<S> = S extends { readonly properties: infer P }
  ? Flatten<
      { readonly [K in keyof P as K extends Present<S, P> ? K : never]: Infer<P[K]> } & {
        readonly [K in keyof P as K extends Present<S, P> ? never : K]?: Infer<P[K]>;
      }
    >
  : S extends { readonly additionalProperties: infer V }
    ? V extends JsonSchema
      ? { readonly [name: string]: Infer<V> }
      : { readonly [name: string]: unknown }
    : { readonly [name: string]: unknown };

/** The names that every checked value has: required, or filled in from a default. */
type Present<S, P> =
  | (S extends { readonly required: readonly (infer R)[] } ? R : never)
  | { [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never }[keyof P];

type Flatten<T> = { [K in keyof T]: T[K] };
