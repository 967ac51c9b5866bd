import { setImmediate } from 'node:timers/promises';
import {
  type ConfigProblem,
  type Contribution,
  type Extensions,
  type Logger,
  parseDuration,
  parseSize,
  type Tool,
  type ToolSource,
} from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { toolEntry } from '../directory/check-config.js';
import { unknownTool } from '../directory/check-tools.js';
import { nameAtModel } from '../directory/tool-names.js';
import { AcceptedTools, type JudgedTool } from './accepted-tools.js';
import { type ArgumentsValidator, argumentsValidator } from './tool-arguments.js';
import { listMistake, toolMistake } from './tool-mistakes.js';

/** The limits of an entry under `tools`. */
interface ToolLimits {
  /** Time limit of one call and its interceptors, in milliseconds. */
  readonly timeout: number;
  /** Longest result for the model, in bytes. */
  readonly result: number;
}

export interface AgentTool extends JudgedTool {
  readonly entry: string;
  readonly tool: Tool;
  /** The agent that it asks, if it is one. */
  readonly asks: ToolSource['asks'];
  readonly limits: ToolLimits;
  readonly check: ArgumentsValidator;
  /** The log for problems with the tool. */
  readonly log: Logger;
}

/** The current tools of one agent. */
export interface Toolbox {
  /** By name, so that requests keep their prefix whatever order the sources list their tools in. */
  readonly declarations: readonly ToolDeclaration[];
  /** By their names at the model. */
  readonly tools: ReadonlyMap<string, AgentTool>;
}

export const NO_TOOLS: Toolbox = { declarations: [], tools: new Map() };

/** Schemas, of a few milliseconds each, that are compiled before others have their turn. */
const COMPILED_AT_ONCE = 4;

/** Distinct warnings that are remembered, so that each is logged once. */
const WARNINGS = 500;

/** A source of an agent's tools, and what it lists. */
interface ListedSource {
  readonly source: Contribution<ToolSource>;
  readonly tools: readonly Tool[];
}

/**
 * Resolves an agent's tool patterns. Sources answer from memory, so they are asked at every turn;
 * names and compiled validators are rebuilt only when a source returns a different list.
 *
 * What is wrong with the tools when the server starts is a mistake of the configuration. Later it
 * is logged once, and the tool is skipped: it does not end the turn.
 */
export class Toolboxes {
  readonly #sources: Extensions<ToolSource>;
  readonly #log: Logger;
  readonly #cache = new Map<readonly string[], { readonly listed: readonly ListedSource[]; readonly toolbox: Toolbox }>();
  /** Undefined for a tool whose schema is invalid. */
  readonly #checks = new WeakMap<Tool, ArgumentsValidator | undefined>();
  #accepted = new AcceptedTools();
  /**
   * The first owner of each name at the model, by agent patterns: `entry/tool`. It keeps the name,
   * even while it is not offered, because conversations may contain calls by that name.
   */
  readonly #owners = new Map<readonly string[], Map<string, string>>();
  /** The last list of each source, for when it fails. */
  readonly #lastListed = new Map<ToolSource, readonly Tool[]>();
  readonly #failing = new Set<ToolSource>();
  readonly #warnings = new Set<string>();

  /** @param sources a view that does not change. */
  constructor(sources: Extensions<ToolSource>, log: Logger) {
    this.#sources = sources;
    this.#log = log;
  }

  /** @param patterns the agent's own array, which is the cache key. */
  async of(patterns: readonly string[], signal: AbortSignal): Promise<Toolbox> {
    if (patterns.length === 0) return NO_TOOLS;
    const cached = this.#cache.get(patterns);
    const sources = cached?.listed.map(({ source }) => source) ?? this.#sourcesOf(patterns);
    const lists = sources.map((source) => this.#list(source, signal));
    const listed = lists.every((list): list is ListedSource => !(list instanceof Promise)) ? lists : await Promise.all(lists);
    if (cached && listed.every(({ tools }, index) => isSameList(tools, cached.listed[index]?.tools ?? []))) return cached.toolbox;
    await this.#compile(patterns, listed);
    const toolbox = this.#build(patterns, listed, (clash) =>
      this.#warnOnce(`${clash}; the newer one was skipped. Rename one of the entries, or list the tools to allow by name`),
    );
    this.#cache.set(patterns, { listed, toolbox });
    return toolbox;
  }

  /** Accepts the tools as their sources list them now. A source that fails offers nothing known. */
  async accept(signal: AbortSignal): Promise<void> {
    const accepted = new AcceptedTools();
    for (const { value } of this.#sources.all()) {
      const listed = await firstList(value, signal);
      accepted.listed(value, typeof listed === 'string' ? [] : listed);
    }
    this.#accepted = accepted;
    this.#cache.clear();
  }

  /**
   * Finds name clashes and unknown tools in an agent's patterns. Paths are relative to the list of
   * patterns.
   */
  async problems(patterns: readonly string[], signal: AbortSignal): Promise<ConfigProblem[]> {
    const problems: ConfigProblem[] = [];
    const listed: ListedSource[] = [];
    for (const source of this.#sourcesOf(patterns)) {
      const tools = await firstList(source.value, signal);
      if (typeof tools !== 'string') {
        this.#accepted.listed(source.value, tools);
        listed.push({ source, tools });
      } else {
        const path = [patterns.findIndex((pattern) => toolEntry(pattern) === source.name)];
        problems.push({ path, message: ofPlugin(source.name, tools) });
      }
    }
    if (problems.length > 0) return problems;
    this.#build(patterns, listed, (clash) =>
      problems.push({ path: [], message: `${clash}; rename one of the entries, or list the tools to allow by name` }),
    );
    for (const [index, pattern] of patterns.entries()) {
      const offered = listed.find(({ source }) => source.name === toolEntry(pattern))?.tools;
      const message = offered && unknownTool(pattern, offered);
      if (message !== undefined) problems.push({ path: [index], message });
    }
    return problems;
  }

  /** The tools that patterns allow, without malformed ones. */
  *#allowed(
    patterns: readonly string[],
    listed: readonly ListedSource[],
  ): Generator<readonly [tool: Tool, source: Contribution<ToolSource>]> {
    for (const { source, tools } of listed) {
      for (const tool of tools) {
        const mistake = toolMistake(tool);
        if (mistake !== undefined) this.#warnOnce(ofPlugin(source.name, `${mistake} and was skipped`));
        else if (patterns.some((pattern) => matches(pattern, source.name, tool.name))) yield [tool, source];
      }
    }
  }

  /** Compiles the schemas of new tools. A source may list 1,000 of them (S-75). */
  async #compile(patterns: readonly string[], listed: readonly ListedSource[]): Promise<void> {
    let compiled = 0;
    for (const [tool, { name }] of this.#allowed(patterns, listed)) {
      if (this.#checks.has(tool)) continue;
      this.#checkOf(name, tool);
      compiled++;
      if (compiled % COMPILED_AT_ONCE === 0) await setImmediate();
    }
  }

  /** Disabled entries are absent. */
  #sourcesOf(patterns: readonly string[]): Contribution<ToolSource>[] {
    const entries = new Set(patterns.map(toolEntry));
    return this.#sources.all().filter(({ name }) => entries.has(name));
  }

  /** Returns no promise if the source returns a list. */
  #list(source: Contribution<ToolSource>, signal: AbortSignal): ListedSource | Promise<ListedSource> {
    const onError = (error: unknown) => this.#keep(source, error, signal);
    try {
      const tools = source.value.tools(signal);
      if (Array.isArray(tools)) return this.#take(source, tools);
      return Promise.resolve(tools)
        .then((listed) => this.#take(source, listed))
        .catch(onError);
    } catch (error) {
      return onError(error);
    }
  }

  /** @throws Error if a source has returned something else than a list. */
  #take(source: Contribution<ToolSource>, tools: readonly Tool[]): ListedSource {
    const mistake = listMistake(tools);
    if (mistake !== undefined) throw new Error(mistake);
    this.#accepted.listed(source.value, tools);
    this.#lastListed.set(source.value, tools);
    this.#failing.delete(source.value);
    return { source, tools };
  }

  /** A source that fails keeps the tools it had. @throws the signal's reason if it has aborted. */
  #keep(source: Contribution<ToolSource>, err: unknown, signal: AbortSignal): ListedSource {
    const { name, value } = source;
    signal.throwIfAborted();
    if (!this.#failing.has(value)) this.#log.warn({ err, entry: `tools.${name}` }, `${LIST_FAILED}; it keeps the tools it had`);
    this.#failing.add(value);
    return { source, tools: this.#lastListed.get(value) ?? [] };
  }

  #build(patterns: readonly string[], listed: readonly ListedSource[], onClash: (clash: string) => void): Toolbox {
    const declarations: ToolDeclaration[] = [];
    const tools = new Map<string, AgentTool>();
    const owners = this.#owners.get(patterns) ?? new Map<string, string>();
    this.#owners.set(patterns, owners);
    for (const [tool, { name: entry, value, shared }] of this.#allowed(patterns, listed)) {
      const name = nameAtModel(entry, tool.name, value.single ?? false);
      const own = label(entry, tool);
      const owner = owners.get(name);
      if (tools.has(name) || (owner !== undefined && owner !== own)) {
        onClash(`two tools have the name "${name}" at the model: ${owner} and ${own}`);
        continue;
      }
      const check = this.#checkOf(entry, tool);
      if (!check) continue;
      owners.set(name, own);
      const judged = this.#accepted.judge(value, tool);
      const limits = toolLimits(shared, value);
      tools.set(name, { ...judged, entry, tool, asks: value.asks, limits, check, log: this.#log });
      declarations.push({ name, description: tool.description, inputSchema: { type: 'object', ...tool.inputSchema } });
    }
    return { declarations: byName(declarations), tools };
  }

  #checkOf(entry: string, tool: Tool): ArgumentsValidator | undefined {
    if (this.#checks.has(tool)) return this.#checks.get(tool);
    this.#checks.set(tool, undefined);
    try {
      const check = argumentsValidator(tool, ([pattern = '', ...others]) => {
        const more = others.length === 0 ? '' : ` and ${others.length} more`;
        this.#warnOnce(
          `tool ${label(entry, tool)}: arguments are not checked against the pattern ${pattern.slice(0, 200)}${more}: look-around and back references cannot be matched in linear time`,
        );
      });
      this.#checks.set(tool, check);
      return check;
    } catch (error) {
      this.#warnOnce(`tool ${label(entry, tool)} has an invalid input schema and was skipped: ${(error as Error).message}`);
      return undefined;
    }
  }

  #warnOnce(warning: string): void {
    if (this.#warnings.has(warning)) return;
    if (this.#warnings.size >= WARNINGS) this.#warnings.clear();
    this.#warnings.add(warning);
    this.#log.warn(warning);
  }
}

/**
 * The tools as a turn declares them: those that it leaves out are gone, and their descriptions are
 * its own.
 */
export function toolboxWith(toolbox: Toolbox, declared: readonly ToolDeclaration[]): Toolbox {
  if (declared === toolbox.declarations) return toolbox;
  const declarations = byName(declared.filter(({ name }) => toolbox.tools.has(name)));
  const names = new Set(declarations.map(({ name }) => name));
  return { declarations, tools: new Map([...toolbox.tools].filter(([name]) => names.has(name))) };
}

/** The tools of a turn so many levels below the first one of its tree (AG-1). */
export function toolboxAt(level: number, toolbox: Toolbox): Toolbox {
  const isTooDeep = (name: string) => (toolbox.tools.get(name)?.asks?.depth ?? Number.POSITIVE_INFINITY) <= level;
  return toolboxWith(
    toolbox,
    toolbox.declarations.filter(({ name }) => !isTooDeep(name)),
  );
}

/** Sorted tools: providers cache a request up to the first difference (AI-10). */
export function byName(declarations: readonly ToolDeclaration[]): readonly ToolDeclaration[] {
  return declarations.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const LIST_FAILED = 'the tools of an entry cannot be listed';

/** The tools of a source when the server starts, or what is wrong with them. */
async function firstList(source: ToolSource, signal: AbortSignal): Promise<readonly Tool[] | string> {
  try {
    const listed = await source.tools(signal);
    return listMistake(listed) ?? listed.map(toolMistake).find((mistake) => mistake !== undefined) ?? listed;
  } catch (error) {
    signal.throwIfAborted();
    return `tools() failed: ${(error as Error).message}`;
  }
}

function ofPlugin(entry: string, mistake: string): string {
  return `entry "${entry}": ${mistake}; its plugin must be corrected`;
}

function matches(pattern: string, entry: string, tool: string): boolean {
  return pattern === entry || pattern === `${entry}/*` || pattern === `${entry}/${tool}`;
}

function label(entry: string, tool: Tool): string {
  return `${entry}/${tool.name}`;
}

/** Sources may make a new list for every turn. */
function isSameList(tools: readonly Tool[], others: readonly Tool[]): boolean {
  return tools.length === others.length && tools.every((tool, index) => tool === others[index]);
}

/** @param shared the options of every entry under `tools`: `timeout` and `resultLimit`. */
function toolLimits(shared: Readonly<Record<string, unknown>>, { timeout = '60s' }: ToolSource): ToolLimits {
  return { timeout: parseDuration(String(shared.timeout ?? timeout)), result: parseSize(String(shared.resultLimit ?? '64kb')) };
}
