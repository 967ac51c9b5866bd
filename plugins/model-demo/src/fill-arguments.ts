import { type Literals, looksLikePath } from './literals.js';
import { timeZoneIn } from './time-zone.js';
import { meaningfulWords, spaced } from './words.js';

type Schema = Readonly<Record<string, unknown>>;

/** Properties that want a path or a URL rather than any text. */
const PATH_NAME = /path|file|dir|folder|source|dest|target|uri|url/i;
const ZONE_NAME = /^(time_?zone|tz)$/i;

/**
 * The arguments that a prompt holds for a tool, or undefined where it lacks one that the tool cannot do without. Nothing is made up: each value
 * stands in the prompt.
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

/** What a prompt has to give to one call. What one property has taken is no longer there for the next. */
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

  /** `docs` of `list the files in docs` or of `read the file docs`: a path that does not look like one. */
  #namedPlace(): string | undefined {
    const places = this.#prompt.matchAll(
      /\b(?:in|under|folder|directory|file)\s+(?!(?:the|folder|directory|file)\b)([\p{L}\p{N}_-]+)/giu,
    );
    return [...places].at(-1)?.[1];
  }

  /** `20 sides` and `sides: 20` say which number is whose; without such a word only a property that must have one takes the next. */
  #number(name: string, needed: boolean, fits: (number: number) => boolean): number | undefined {
    const [label] = meaningfulWords(spaced(name));
    const named = this.#numbers.findIndex((number) => fits(number) && label !== undefined && this.#standsBeside(number, label));
    const index = named < 0 && needed ? this.#numbers.findIndex(fits) : named;
    return index < 0 ? undefined : this.#numbers.splice(index, 1)[0];
  }

  #standsBeside(number: number, label: string): boolean {
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

/** The type that a property is of where it is not null. */
function kindOf(property: Schema): unknown {
  const { type, anyOf } = property;
  if (Array.isArray(type)) return type.find((one) => one !== 'null');
  if (Array.isArray(anyOf)) return anyOf.map((branch) => kindOf(asObject(branch))).find((kind) => kind !== 'null');
  return type;
}

function asObject(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {};
}
