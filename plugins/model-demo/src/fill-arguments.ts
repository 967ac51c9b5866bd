import { type Literals, looksLikePath } from './literals.js';
import { meaningfulWords, spaced } from './words.js';

type Schema = Readonly<Record<string, unknown>>;

/** Properties that expect a path or a URL. */
const PATH_NAME = /path|file|dir|folder|source|dest|target|uri|url/i;
const ZONE_NAME = /^(time_?zone|tz)$/i;

/**
 * Finds the arguments of a tool in a prompt. Every value is taken from the prompt. Returns
 * undefined if a required argument is missing.
 */
export function fillArguments(schema: Schema, prompt: string, literals: Literals): Record<string, unknown> | undefined {
  const supply = new Supply(prompt, literals);
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const filled: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(asObject(schema.properties))) {
    const value = supply.take(name, asObject(property), required.includes(name));
    if (value !== undefined) filled[name] = value;
  }
  return required.every((name) => Object.hasOwn(filled, String(name))) ? filled : undefined;
}

/** The values that a prompt contains. Each value is given to one property only. */
class Supply {
  readonly #prompt: string;
  readonly #quoted: string[];
  readonly #paths: string[];
  readonly #words: readonly string[];
  readonly #numbers: number[];

  constructor(prompt: string, { quoted, paths, rest }: Literals) {
    this.#prompt = prompt;
    this.#quoted = [...quoted];
    this.#paths = [...paths];
    this.#words = rest.match(/-?\d+(?:\.\d+)?|[\p{L}\p{N}_]+/gu) ?? [];
    this.#numbers = this.#words.map(Number).filter((number) => !Number.isNaN(number));
  }

  take(name: string, property: Schema, needed: boolean): unknown {
    if (property.const !== undefined) return needed ? property.const : undefined;
    if (Array.isArray(property.enum)) return this.#oneOf(property.enum);
    switch (kindOf(property)) {
      case 'string':
        return this.#text(name, needed);
      case 'integer':
        return this.#number(name, needed, Number.isInteger);
      case 'number':
        return this.#number(name, needed, () => true);
      case 'array':
        return needed ? this.#list(name, asObject(property.items)) : undefined;
      default:
        return undefined;
    }
  }

  #oneOf(values: readonly unknown[]): unknown {
    const said = new Set([...this.#words, ...this.#quoted].map((word) => word.toLowerCase()));
    return values.find((value) => said.has(String(value).toLowerCase()));
  }

  #text(name: string, needed: boolean): string | undefined {
    if (ZONE_NAME.test(name)) return timeZoneIn(this.#prompt);
    if (PATH_NAME.test(name)) {
      return this.#paths.shift() ?? this.#quotedPath() ?? (needed ? this.#namedPlace() : undefined) ?? this.#quoted.shift();
    }
    return this.#quoted.shift() ?? (needed ? this.#paths.shift() : undefined);
  }

  #quotedPath(): string | undefined {
    const index = this.#quoted.findIndex(looksLikePath);
    return index < 0 ? undefined : this.#quoted.splice(index, 1)[0];
  }

  /**
   * Finds a path that does not look like one: `docs` in `list the files in docs` or
   * `read the file docs`.
   */
  #namedPlace(): string | undefined {
    const places = this.#prompt.matchAll(
      /\b(?:in|under|folder|directory|file)\s+(?!(?:the|folder|directory|file)\b)([\p{L}\p{N}_-]+)/giu,
    );
    return [...places].at(-1)?.[1];
  }

  /**
   * Finds a number beside the property's name, as in `20 sides` or `sides: 20`. A required property
   * else takes the next number.
   */
  #number(name: string, needed: boolean, fits: (number: number) => boolean): number | undefined {
    const [label] = meaningfulWords(spaced(name));
    const named = this.#numbers.findIndex((number) => fits(number) && label !== undefined && this.#isBeside(number, label));
    const index = named < 0 && needed ? this.#numbers.findIndex(fits) : named;
    return index < 0 ? undefined : this.#numbers.splice(index, 1)[0];
  }

  #isBeside(number: number, label: string): boolean {
    const isLabel = (word = ''): boolean => meaningfulWords(word)[0] === label;
    return this.#words.some((word, i) => Number(word) === number && (isLabel(this.#words[i - 1]) || isLabel(this.#words[i + 1])));
  }

  #list(name: string, items: Schema): readonly unknown[] | undefined {
    const kind = kindOf(items);
    const source = kind === 'integer' || kind === 'number' ? this.#numbers : kind !== 'string' ? [] : this.#textsFor(name);
    return source.length === 0 ? undefined : source.splice(0);
  }

  #textsFor(name: string): string[] {
    return PATH_NAME.test(name) && this.#paths.length > 0 ? this.#paths : this.#quoted;
  }
}

/** The type of a property, `null` ignored. */
function kindOf(property: Schema): unknown {
  const { type, anyOf } = property;
  if (Array.isArray(type)) return type.find((one) => one !== 'null');
  if (Array.isArray(anyOf)) return anyOf.map((branch) => kindOf(asObject(branch))).find((kind) => kind !== 'null');
  return type;
}

function asObject(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {};
}

/**
 * Finds an IANA time zone in a prompt, by its name (`Europe/Paris`) or its city (`New York`). The
 * longest name wins.
 */
function timeZoneIn(prompt: string): string | undefined {
  const said = ` ${plain(prompt)} `;
  let found: string | undefined;
  let length = 0;
  for (const zone of ['UTC', ...Intl.supportedValuesOf('timeZone')]) {
    for (const name of [plain(zone), plain(zone.slice(zone.lastIndexOf('/') + 1))]) {
      if (name.length > length && said.includes(` ${name} `)) {
        found = zone;
        length = name.length;
      }
    }
  }
  return found;
}

function plain(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}+]+/gu, ' ')
    .trim();
}
