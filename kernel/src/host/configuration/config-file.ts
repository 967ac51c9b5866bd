import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import {
  type Document,
  isAlias,
  isCollection,
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
import { ConfigError, type Fault, fault } from '../base/errors.js';
import type { ConfigPath, Position } from '../base/problem.js';
import type { ConfigSource, TextFault } from './config-source.js';
import { syntaxFault } from './yaml-sentences.js';

/** A configuration file: its YAML content (JSON is YAML) and where its keys and values are. */
export class ConfigFile implements ConfigSource {
  /** The content, with variables not yet replaced. Null if `broken`. */
  readonly content: unknown;
  readonly faults: readonly TextFault[];
  /** Whether the text cannot be parsed as YAML. A duplicate key does not break it. */
  readonly broken: boolean;
  /** The file's folder: relative paths are relative to it. */
  readonly folder: string;
  readonly hasVariables = true;
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
    const faults = this.#textFaults(text);
    let broken = faults.some(({ code }) => code !== 'YAML_DUPLICATE_KEY');
    let content: unknown = null;
    try {
      if (!broken) content = this.#document.toJS();
    } catch (error) {
      // Aliases of aliases that would expand to a huge document: the only error that is left.
      if (!(error instanceof ReferenceError)) throw error;
      broken = true;
      faults.push({ path: [], position: this.#positionAt(0), ...fault('YAML_ALIAS_EXPANSION') });
    }
    this.broken = broken;
    this.content = content;
    this.faults = faults;
  }

  /**
   * Reads a file.
   *
   * @param path relative to `cwd`.
   * @throws ConfigError if the file cannot be read.
   */
  static read(path: string, cwd: string): ConfigFile {
    const absolute = resolve(cwd, path);
    const below = relative(cwd, absolute);
    const shown = below.startsWith('..') || isAbsolute(below) ? absolute : below.split(sep).join('/');
    try {
      return new ConfigFile(absolute, shown, readFileSync(absolute, 'utf8'));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      throw new ConfigError([{ file: shown || '.', position: undefined, path: [], ...readFault(code, absolute) }]);
    }
  }

  /** The position of the key or value at a path, or of its nearest parent that is in the file. */
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

  /**
   * All mistakes in the text, as far as the parser can tell: at most one syntax error of a line,
   * and none after the first that changes the structure, such as a wrong indentation or a missing
   * quote. The parser cannot know what was meant after it, and most later errors only follow from
   * it. For the same reason, duplicate keys are reported up to the first syntax error only.
   */
  #textFaults(text: string): TextFault[] {
    const { errors, warnings } = this.#document;
    // Warnings about indentation concern a closing bracket that every other parser accepts.
    const found = [...errors, ...warnings.filter(({ code }) => code !== 'BAD_INDENT')];
    const faults: TextFault[] = [];
    const lines = new Set<number>();
    let end = text.length;
    for (const error of found.toSorted((a, b) => a.pos[0] - b.pos[0])) {
      const [offset] = error.pos;
      const position = this.#positionAt(offset);
      if (error.code === 'DUPLICATE_KEY') {
        if (lines.size === 0) faults.push({ path: this.#pathOfKey(offset), position, ...fault('YAML_DUPLICATE_KEY') });
      } else if (!lines.has(position.line)) {
        lines.add(position.line);
        const { isLocal, ...described } = this.#syntaxFault(error, text);
        faults.push(described);
        if (!isLocal) {
          end = offset;
          break;
        }
      }
    }
    const aliases = this.#aliasFaults().filter(({ offset }) => offset < end && !lines.has(this.#positionAt(offset).line));
    return [...faults, ...aliases.map(({ offset, ...alias }) => ({ path: [], position: this.#positionAt(offset), ...alias }))];
  }

  #syntaxFault(error: YAMLError, text: string): TextFault & { readonly isLocal: boolean } {
    const [offset] = error.pos;
    if (['UNEXPECTED_TOKEN', 'MISSING_CHAR'].includes(error.code) && /\$\{?$/.test(text.slice(0, offset))) {
      return { path: [], position: this.#positionAt(offset), isLocal: false, ...fault('YAML_UNQUOTED_VARIABLE') };
    }
    const { message, isLocal } = syntaxFault(error, text);
    return { path: [], position: this.#positionAt(this.#startOf(error)), isLocal, ...fault('YAML_INVALID', message) };
  }

  /** Where an error starts. The parser reports an unclosed quote or bracket where it gave up. */
  #startOf({ message, pos: [offset] }: YAMLError): number {
    let start = offset;
    if (!/closing|end with a/.test(message)) return start;
    visit(this.#document, (_, node) => {
      const isEnclosed = isCollection(node) ? node.flow === true : isScalar(node) && /^QUOTE/.test(node.type ?? '');
      if (!isNode(node) || !node.range || !isEnclosed) return;
      if (node.range[0] < offset && node.range[1] >= offset) [start] = node.range;
    });
    return start;
  }

  /** Finds aliases without an anchor, and those that contain themselves. */
  #aliasFaults(): (Fault & { readonly offset: number })[] {
    const faults: (Fault & { readonly offset: number })[] = [];
    visit(this.#document, {
      Alias: (_, alias, ancestors) => {
        const offset = alias.range?.[0] ?? 0;
        const target = alias.resolve(this.#document);
        if (target === undefined) faults.push({ offset, ...fault('YAML_UNKNOWN_ALIAS', alias.source) });
        else if (ancestors.includes(target)) faults.push({ offset, ...fault('YAML_ALIAS_CYCLE', alias.source) });
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

function readFault(code: string, path: string): Fault {
  if (code === 'ENOENT' || code === 'ENOTDIR') return fault('FILE_NOT_FOUND', path);
  return code === 'EISDIR' ? fault('FILE_IS_FOLDER', path) : fault('FILE_UNREADABLE', code);
}

function keyText(pair: Pair): string {
  // Not the value: that of a merge key, `<<`, is a symbol.
  return isScalar(pair.key) ? (pair.key.source ?? String(pair.key.value)) : String(pair.key);
}

function asNode(value: unknown): Node | undefined {
  return isNode(value) ? value : undefined;
}

/** The maps that `<<: *base` or `<<: [*a, *b]` merges. */
function mergedMaps(map: YAMLMap, document: Document): Node[] {
  const merges = map.items.filter((pair) => keyText(pair) === '<<').map((pair) => pair.value);
  return merges.flatMap((value) => {
    const node = isAlias(value) ? value.resolve(document) : value;
    return (isSeq(node) ? node.items : [node]).filter(isNode);
  });
}
