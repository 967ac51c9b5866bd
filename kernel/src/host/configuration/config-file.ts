import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { ConfigError, type ConfigPath, type Position } from '../base/errors.js';

/** Something wrong with the text itself. */
export interface TextFault {
  readonly path: ConfigPath;
  readonly position: Position;
  readonly message: string;
}

/** The text of a configuration as YAML sees it (JSON is YAML), which remembers where everything stands. */
export class ConfigFile {
  /** What stands in it: variables are not yet replaced. Empty where `broken`. */
  readonly content: unknown;
  readonly faults: readonly TextFault[];
  /** Whether the text is no YAML, so that nothing more can be said about it. A key written twice does not break it. */
  readonly broken: boolean;
  /** The folder that relative paths are relative to. */
  readonly folder: string;
  readonly #document: Document.Parsed;
  readonly #lines = new LineCounter();

  /** @param shown the file's name in messages. */
  constructor(
    readonly path: string,
    readonly shown: string,
    text: string,
  ) {
    this.folder = dirname(path);
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, merge: true });
    const errors = untilLost([...this.#document.errors, ...this.#document.warnings]);
    const faults = errors.map((error) => this.#fault(error, text));
    faults.push(...this.#aliasFaults());
    let broken = errors.some((error) => error.code !== 'DUPLICATE_KEY') || faults.length > errors.length;
    let content: unknown = null;
    try {
      if (!broken) content = this.#document.toJS();
    } catch (error) {
      // The only fault left: aliases of aliases that would expand to a huge document.
      if (!(error instanceof ReferenceError)) throw error;
      broken = true;
      faults.push({ path: [], position: this.#positionAt(0), message: 'too many aliases that refer to other aliases' });
    }
    this.broken = broken;
    this.content = content;
    this.faults = faults;
  }

  /** @param path relative to `cwd`. @throws ConfigError where it cannot be read. */
  static read(path: string, cwd: string): ConfigFile {
    const absolute = resolve(cwd, path);
    const below = relative(cwd, absolute);
    const shown = below.startsWith('..') || isAbsolute(below) ? absolute : below.split(sep).join('/');
    try {
      return new ConfigFile(absolute, shown, readFileSync(absolute, 'utf8'));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      const message =
        code === 'ENOENT' ? `there is no such file (${absolute}); name one with -c FILE` : `the file cannot be read (${code})`;
      throw new ConfigError([{ file: shown, position: undefined, path: [], message }]);
    }
  }

  /** Where the key or the value at a path stands; the nearest thing around it where it does not stand in the file. */
  position(path: ConfigPath, of: 'key' | 'value'): Position {
    let key: Node | undefined;
    let value: Node | undefined = this.#document.contents ?? undefined;
    for (const step of path) {
      const pair = this.#child(value, step);
      if (pair === undefined) break;
      ({ key, value } = pair);
    }
    const node = of === 'key' || value?.range?.[0] === value?.range?.[2] ? (key ?? value) : value;
    return this.#positionAt(node?.range?.[0] ?? 0);
  }

  #positionAt(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }

  #child(parent: Node | undefined, step: string | number): { key: Node | undefined; value: Node | undefined } | undefined {
    const node = isAlias(parent) ? parent.resolve(this.#document) : parent;
    if (isSeq(node)) {
      const item = node.items[Number(step)];
      return isNode(item) ? { key: item, value: item } : undefined;
    }
    if (!isMap(node)) return undefined;
    const own = node.items.find((pair) => keyText(pair) === String(step));
    if (own !== undefined) return { key: asNode(own.key), value: asNode(own.value) };
    for (const merged of mergedMaps(node, this.#document)) {
      const inherited = this.#child(merged, step);
      if (inherited !== undefined) return inherited;
    }
    return undefined;
  }

  #fault(error: YAMLError, text: string): TextFault {
    const [offset] = error.pos;
    const position = this.#positionAt(offset);
    if (error.code === 'UNEXPECTED_TOKEN' && /\$\{?$/.test(text.slice(0, offset))) {
      return { path: [], position, message: `a variable inside { } or [ ] must stand in quotes, as in "\${NAME}"` };
    }
    if (error.code !== 'DUPLICATE_KEY') return { path: [], position, message: `this is no YAML: ${error.message}` };
    return { path: this.#pathOfKey(offset), position, message: 'this key is written twice' };
  }

  /** Aliases without an anchor, and aliases inside of what they refer to: neither can be read as data. */
  #aliasFaults(): TextFault[] {
    const faults: TextFault[] = [];
    visit(this.#document, {
      Alias: (_, alias, ancestors) => {
        const position = this.#positionAt(alias.range?.[0] ?? 0);
        const target = alias.resolve(this.#document);
        if (target === undefined) {
          const message = `the alias *${alias.source} names no anchor; there is no &${alias.source} above it`;
          faults.push({ path: [], position, message });
        } else if (ancestors.includes(target)) {
          faults.push({ path: [], position, message: `the alias "${alias.source}" refers to a value that contains it` });
        }
      },
    });
    return faults;
  }

  #pathOfKey(offset: number): ConfigPath {
    let found: ConfigPath = [];
    visit(this.#document, {
      Pair: (_, pair, ancestors) => {
        if (asNode(pair.key)?.range?.[0] !== offset) return undefined;
        const pairs = ancestors.filter((ancestor) => isPair(ancestor));
        found = [...pairs, pair].map(keyText);
        return visit.BREAK;
      },
    });
    return found;
  }
}

/** Where the parser has lost its way, each token that follows is an error of its own: one of them is enough. */
function untilLost(errors: readonly YAMLError[]): YAMLError[] {
  const inOrder = errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
  const lost = inOrder.findIndex(({ code }) => code === 'UNEXPECTED_TOKEN');
  return lost < 0 ? inOrder : inOrder.slice(0, lost + 1);
}

function keyText(pair: Pair): string {
  // Not its value: that of a merge key, `<<`, is a symbol.
  return isScalar(pair.key) ? (pair.key.source ?? String(pair.key.value)) : String(pair.key);
}

function asNode(value: unknown): Node | undefined {
  return isNode(value) ? value : undefined;
}

/** What `<<: *base` or `<<: [*a, *b]` brings in. */
function mergedMaps(map: YAMLMap, document: Document): Node[] {
  const merges = map.items.filter((pair) => keyText(pair) === '<<').map((pair) => pair.value);
  return merges.flatMap((value) => {
    const node = isAlias(value) ? value.resolve(document) : value;
    return (isSeq(node) ? node.items : [node]).filter(isNode);
  });
}
