/**
 * Mutations of valid JSON: what costs a server more than its sender. The result is text, because
 * much of it cannot be a value: duplicate keys, nesting that `JSON.stringify` does not write,
 * broken escapes.
 */
import type { Random } from './random.js';

/** JSON text in the place of a value. */
class Raw {
  constructor(readonly text: string) {}
}

type Path = readonly (string | number)[];

/**
 * Characters of one repeated piece. Bodies end at 20 MiB, so these reach the limits of the server.
 */
const MAX_TEXT = 6_000_000;
const MAX_BYTES = 20_000_000;
const MAX_ITEMS = 250_000;
const MAX_KEYS = 20_000;
const MAX_DEPTH = 200_000;

/** Pieces of strings, as JSON text. */
const PIECES = [
  'x',
  'word ',
  '\\u0000',
  '\\n',
  '\\"',
  '\\\\',
  '\\ud800',
  '\\u00e9',
  'é',
  '👩‍👩‍👧‍👦',
  'e\u0301\u0302\u0303',
  '\u2028',
  '\u202e',
  '\ufeff',
  '<script>',
  '{{x}}',
  '$x',
  '%s',
  '../',
  '\\/',
  '[{\\"a\\":',
  '```',
  'a\\tb',
  ' ',
] as const;

const SCALARS = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '1e999',
  '-1e999',
  '1e-999',
  '9007199254740993',
  '0.1',
  '[]',
  '{}',
  '""',
  '" "',
  '"NaN"',
  '-1',
  '4294967296',
] as const;

const PATTERNS = [
  '^(a+)+$',
  '(.*)*x',
  '^(\\\\w+\\\\s?)*$',
  '(?=a)b',
  '(a)\\\\1',
  '[',
  'a{1,1000}{1,1000}',
  '\\\\p{L}+',
  '(x+x+)+y',
] as const;

/** Prints a value that may hold `Raw`. */
export function print(value: unknown): string {
  if (value instanceof Raw) return value.text;
  if (Array.isArray(value)) return `[${value.map(print).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  return `{${Object.entries(value)
    .map(([key, item]) => `${JSON.stringify(key)}:${print(item)}`)
    .join()}}`;
}

/** How often an item is repeated, within the bytes of a body. */
function timesOf(item: string, limit: number, random: Random): number {
  return Math.ceil(Math.min(random.count(limit), MAX_BYTES / (item.length + 10)));
}

type Mutation = (value: unknown, random: Random, whole: unknown) => unknown;

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  scalar: (_, random) => new Raw(random.pick(SCALARS)),
  number: (_, random) =>
    new Raw(
      `${random.pick(['', '-'])}${random.pick(['9', '1'])}${'7'.repeat(random.count(100_000))}${random.pick(['', '.5', 'e5'])}`,
    ),
  text: (_, random) => {
    const piece = random.pick(PIECES);
    return new Raw(`"${piece.repeat(Math.ceil(random.count(MAX_TEXT) / piece.length))}"`);
  },
  texts: (_, random) => new Raw(`"${Array.from({ length: random.count(20_000) }, () => random.pick(PIECES)).join('')}"`),
  nest: (value, random) => {
    const [open, close] = random.pick([
      ['[', ']'],
      ['{"a":', '}'],
      ['[{"type":"object","properties":{"x":', '}}]'],
      ['{"items":', '}'],
    ] as const);
    const depth = random.chance(0.5) ? random.below(66) : random.count(MAX_DEPTH);
    return new Raw(open.repeat(depth) + print(value) + close.repeat(depth));
  },
  more: (value, random) => {
    if (!Array.isArray(value) || value.length === 0) return value;
    const item = print(random.pick(value));
    const count = timesOf(item, MAX_ITEMS, random);
    return new Raw(`[${[...value.map(print), ...Array<string>(count).fill(item)].join()}]`);
  },
  extend: (value, random) => {
    const item = random.chance(0.8) ? random.pick(SCALARS) : '"x"';
    const more = Array.from({ length: timesOf(item, MAX_KEYS, random) }, (_, index) => `"k${index}":${item}`).join();
    return new Raw(print(value).replace(/\}$/, `${print(value) === '{}' ? '' : ','}${more}}`));
  },
  repeat: (value, random) => {
    const text = print(value);
    const count = timesOf(text, MAX_ITEMS, random);
    return new Raw(`[${Array(count).fill(text).join()}]`);
  },
  keys: (value, random) => {
    const name = random.pick(['k', '', '__proto__', 'constructor', '\\u0061', 'é']);
    const item = random.chance(0.7) ? random.pick(SCALARS) : print(value);
    const isSame = random.chance(0.2);
    return new Raw(
      `{${Array.from(
        { length: timesOf(item, MAX_KEYS, random) },
        (_, index) => `"${name}${isSame ? '' : index}":${item}`,
      ).join()}}`,
    );
  },
  prototype: (value) => new Raw(`{"__proto__":${print(value)},"constructor":{"prototype":${print(value)}},"toString":1}`),
  splice: (_, random, whole) => at(whole, random.pick(pathsOf(whole))),
  expanding: (_, random) => {
    const [levels, width] = [2 + random.below(40), 2 + random.below(3)];
    const reference = (index: number) => Array(width).fill(`{"$ref":"#/$defs/d${index}"}`);
    const defs = Array.from({ length: levels }, (_, index) => {
      const next = index + 1 < levels ? reference(index + 1) : ['{"type":"string"}'];
      const properties = `{${next.map((item, place) => `"p${place}":${item}`).join()}}`;
      return `"d${index}":${random.chance(0.3) ? `{"anyOf":[${next.join()}]}` : `{"type":"object","properties":${properties}}`}`;
    });
    return new Raw(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{${defs.join()}}}`);
  },
  cyclic: (_, random) => {
    const inner = random.pick(['{"$ref":"#"}', '{"$ref":"#/$defs/a"}', '{"$dynamicRef":"#a"}', '{"$ref":"#/properties/x"}']);
    return new Raw(
      `{"type":"object","properties":{"x":${inner},"y":{"items":${inner}}},` +
        `"$defs":{"a":{"allOf":[${inner},{"$ref":"#/$defs/a"}]}}}`,
    );
  },
  types: (_, random) => {
    const depth = 1 + random.below(30);
    const types = random.pick([
      '["string","null"]',
      '["object","array","string","number","null"]',
      '["object","object","object"]',
    ]);
    return new Raw(`${`{"type":${types},"items":{"type":"string"},"properties":{"a":`.repeat(depth)}{}${'}}'.repeat(depth)}`);
  },
  pattern: (_, random) =>
    new Raw(
      `{"type":"object","properties":{"q":{"type":"string","pattern":"${random.pick(PATTERNS)}"}},` +
        `"patternProperties":{"${random.pick(PATTERNS)}":{}}}`,
    ),
  enumeration: (_, random) =>
    new Raw(`{"type":"object","properties":{"q":{"enum":[${[...Array(random.count(50_000)).keys()].join()}]}}}`),
  url: (_, random) =>
    new Raw(
      `{"type":"image_url","image_url":{"url":"${random.pick(['data:image/png;base64,', 'https://', 'file:///', 'data:'])}` +
        `${'A'.repeat(random.count(MAX_TEXT))}"}}`,
    ),
};

const NAMES = Object.keys(MUTATIONS);

/** Mutations that keep the type, so that the request goes further, by the type. */
const LIKE: Readonly<Record<string, readonly string[]>> = {
  string: ['text', 'texts'],
  number: ['number'],
  boolean: ['scalar'],
  array: ['more', 'more', 'repeat'],
  object: ['extend', 'extend', 'keys', 'prototype', 'splice'],
};
const SCHEMAS = ['expanding', 'cyclic', 'types', 'pattern', 'enumeration', 'nest'];

function mutationFor(path: Path, value: unknown, random: Random): string {
  if (random.chance(0.3)) return random.pick(NAMES);
  if (path.some((key) => key === 'parameters' || key === 'schema') && random.chance(0.5)) return random.pick(SCHEMAS);
  return random.pick(LIKE[Array.isArray(value) ? 'array' : typeof value] ?? NAMES);
}

/** A mutated body, and the names of its mutations. */
export interface Mutated {
  readonly bytes: Buffer;
  readonly mutations: readonly string[];
}

/** Mutates a valid JSON value. */
export function mutate(sample: unknown, random: Random): Mutated {
  let value = sample;
  const mutations: string[] = [];
  for (let count = 1 + random.below(3); count > 0; count--) {
    const paths = pathsOf(value);
    const path = [random.pick(paths), random.pick(paths)].reduce((a, b) => (b.length > a.length ? b : a));
    const name = mutationFor(path, at(value, path), random);
    mutations.push(`${name} at ${path.join('.') || '.'}`);
    if (random.chance(0.05)) {
      mutations.push('removed');
      value = replace(value, path, undefined);
    } else value = replace(value, path, MUTATIONS[name]?.(at(value, path), random, value));
  }
  return { bytes: broken(print(value), random, mutations), mutations };
}

/** Breaks the text itself, once in a while. */
function broken(text: string, random: Random, mutations: string[]): Buffer {
  if (!random.chance(0.1)) return Buffer.from(text);
  const how = random.pick(['cut', 'doubled', 'spaces', 'bytes', 'mark', 'utf-16'] as const);
  mutations.push(how);
  switch (how) {
    case 'cut':
      return Buffer.from(text.slice(0, random.below(text.length)));
    case 'doubled':
      return Buffer.from(text + text);
    case 'spaces':
      return Buffer.from(random.pick([' ', '\t', '\r\n']).repeat(random.count(MAX_TEXT)) + text);
    case 'bytes': {
      const bytes = Buffer.from(text);
      for (let count = random.count(1_000); count > 0; count--)
        bytes[random.below(bytes.length)] = random.pick([0xff, 0xc0, 0xed, 0x80, 0x00, 0xf8]);
      return bytes;
    }
    case 'mark':
      return Buffer.from(`\ufeff${text}`);
    case 'utf-16':
      return Buffer.from(text, 'utf16le');
  }
}

/** The places of all values in a value, the whole among them. */
function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null || value instanceof Raw) return [path];
  return [
    path,
    ...Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, Array.isArray(value) ? Number(key) : key])),
  ];
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], value);
}

/** @param put undefined removes the value. */
function replace(value: unknown, [key, ...rest]: Path, put: unknown): unknown {
  if (key === undefined) return put ?? {};
  const copy: unknown = Array.isArray(value) ? [...value] : { ...(value as object) };
  const inner = copy as Record<string, unknown>;
  if (rest.length > 0 || put !== undefined) inner[key] = replace(inner[key], rest, put);
  else delete inner[key];
  return copy;
}
