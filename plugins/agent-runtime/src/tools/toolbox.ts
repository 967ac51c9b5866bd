import type { ConfigProblem, Contribution, Extensions, Logger, Tool, ToolSource } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { toolEntry } from '../directory/check-config.js';
import { type ArgumentsValidator, argumentsValidator } from './tool-arguments.js';
import { nameAtModel } from './tool-names.js';
import { type ToolLimits, toolLimits } from './tool-run.js';

/** A tool of an agent. */
export interface AgentTool {
  readonly entry: string;
  readonly tool: Tool;
  readonly limits: ToolLimits;
  readonly check: ArgumentsValidator;
  /** The log for problems with the tool. */
  readonly log: Logger;
}

/** The current tools of one agent. */
export interface Toolbox {
  /** In a stable order, which keeps the prompt prefix stable between turns. */
  readonly declarations: readonly ToolDeclaration[];
  /** By their names at the model. */
  readonly tools: ReadonlyMap<string, AgentTool>;
}

const EMPTY: Toolbox = { declarations: [], tools: new Map() };

interface CachedToolbox {
  readonly sources: readonly Contribution<ToolSource>[];
  readonly listed: readonly (readonly Tool[])[];
  readonly toolbox: Toolbox;
}

/**
 * Resolves an agent's tool patterns. Sources answer from memory, so they are asked at every turn;
 * names and compiled validators are rebuilt only when a source returns a different list.
 */
export class Toolboxes {
  readonly #sources: Extensions<ToolSource>;
  readonly #log: Logger;
  readonly #cache = new Map<readonly string[], CachedToolbox>();
  readonly #checks = new WeakMap<Tool, ArgumentsValidator>();
  /**
   * The first owner of each name at the model, by agent patterns: `entry/tool`. It keeps the name, even
   * while it is not offered, because conversations may contain calls by that name.
   */
  readonly #owners = new Map<readonly string[], Map<string, string>>();

  /** @param sources a view that does not change. */
  constructor(sources: Extensions<ToolSource>, log: Logger) {
    this.#sources = sources;
    this.#log = log;
  }

  /** @param patterns the agent's own array, which is the cache key. */
  async of(patterns: readonly string[], signal: AbortSignal): Promise<Toolbox> {
    if (patterns.length === 0) return EMPTY;
    const cached = this.#cache.get(patterns);
    const sources = cached?.sources ?? this.#sourcesOf(patterns);
    const listed = await Promise.all(sources.map(({ value }) => value.tools(signal)));
    if (cached && cached.listed.length === listed.length && cached.listed.every((tools, index) => tools === listed[index])) {
      return cached.toolbox;
    }
    const toolbox = this.#build(patterns, sources, listed, (clash) => this.#log.warn(`${clash}; the newer one was skipped`));
    this.#cache.set(patterns, { sources, listed, toolbox });
    return toolbox;
  }

  /**
   * Finds name clashes and unknown tools in an agent's patterns. Paths are relative to the list of
   * patterns.
   */
  async problems(patterns: readonly string[], signal: AbortSignal): Promise<ConfigProblem[]> {
    const problems: ConfigProblem[] = [];
    const sources = this.#sourcesOf(patterns);
    const listed = await Promise.all(sources.map(({ value }) => value.tools(signal)));
    for (const [index, { name }] of sources.entries()) {
      const mistake = mistakeOf(listed[index]);
      if (mistake === undefined) continue;
      const path = [patterns.findIndex((pattern) => toolEntry(pattern) === name)];
      problems.push({ path, message: `entry "${name}": ${mistake}; its plugin must be corrected` });
    }
    if (problems.length > 0) return problems;
    this.#build(patterns, sources, listed, (clash) =>
      problems.push({ path: [], message: `${clash}; rename one of the entries, or list the tools to allow by name` }),
    );
    for (const [index, pattern] of patterns.entries()) {
      const entry = toolEntry(pattern);
      const wanted = pattern.slice(entry.length + 1);
      const offered = listed[sources.findIndex(({ name }) => name === entry)]?.map(({ name }) => name);
      if (!offered || wanted === '' || wanted === '*' || offered.includes(wanted)) continue;
      problems.push({
        path: [index],
        message: `unknown tool "${wanted}"; entry "${entry}" offers ${offered.join(', ') || 'nothing'}`,
      });
    }
    return problems;
  }

  /** Disabled entries are absent. */
  #sourcesOf(patterns: readonly string[]): Contribution<ToolSource>[] {
    const entries = new Set(patterns.map(toolEntry));
    return this.#sources.all().filter(({ name }) => entries.has(name));
  }

  #build(
    patterns: readonly string[],
    sources: readonly Contribution<ToolSource>[],
    listed: readonly (readonly Tool[])[],
    onClash: (clash: string) => void,
  ): Toolbox {
    const declarations: ToolDeclaration[] = [];
    const tools = new Map<string, AgentTool>();
    const owners = this.#owners.get(patterns) ?? new Map<string, string>();
    this.#owners.set(patterns, owners);
    sources.forEach((source, index) => {
      for (const tool of listed[index] ?? []) {
        if (!patterns.some((pattern) => matches(pattern, source.name, tool.name))) continue;
        const name = nameAtModel(source.name, tool.name, source.value.single ?? false);
        const owner = owners.get(name);
        if (tools.has(name) || (owner !== undefined && owner !== label(source.name, tool))) {
          onClash(`two tools have the name "${name}" at the model: ${owner} and ${label(source.name, tool)}`);
          continue;
        }
        const check = this.#checkOf(source.name, tool);
        if (!check) continue;
        owners.set(name, label(source.name, tool));
        tools.set(name, { entry: source.name, tool, limits: toolLimits(source.shared), check, log: this.#log });
        declarations.push({ name, description: tool.description, inputSchema: tool.inputSchema });
      }
    });
    return { declarations, tools };
  }

  #checkOf(entry: string, tool: Tool): ArgumentsValidator | undefined {
    const known = this.#checks.get(tool);
    if (known) return known;
    try {
      const check = argumentsValidator(tool);
      this.#checks.set(tool, check);
      return check;
    } catch (error) {
      this.#log.warn(`tool ${label(entry, tool)} has an invalid input schema and was skipped: ${(error as Error).message}`);
      return undefined;
    }
  }
}

/** Says why what a plugin's `tools()` returned is not a list of tools. */
function mistakeOf(listed: unknown): string | undefined {
  if (!Array.isArray(listed)) return 'tools() did not return an array';
  for (const tool of listed as readonly Partial<Tool>[]) {
    if (typeof tool?.name !== 'string') return 'tools() returned a tool without a name';
    if (typeof tool.description !== 'string') return `the tool "${tool.name}" has no description`;
    if (typeof tool.inputSchema !== 'object' || tool.inputSchema === null) return `the tool "${tool.name}" has no inputSchema`;
    if (typeof tool.run !== 'function') return `the tool "${tool.name}" has no run()`;
  }
  return undefined;
}

function matches(pattern: string, entry: string, tool: string): boolean {
  return pattern === entry || pattern === `${entry}/*` || pattern === `${entry}/${tool}`;
}

function label(entry: string, tool: Tool): string {
  return `${entry}/${tool.name}`;
}
