import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigImage } from '@plugboard/kernel/internal';

type Options = Readonly<Record<string, unknown>>;

/** Two configurations, whose values are digests, and the second one with its values. */
interface Compared {
  readonly before: ConfigImage;
  readonly after: ConfigImage;
  readonly values: ConfigImage;
  readonly folder: string;
}

/**
 * The agents whose sessions continue with another prefix of their requests, because the prompt, the
 * tools or the model connection has changed. One line for each agent. The order of tools means
 * nothing: requests have them sorted by name.
 */
export function coldSessions(compared: Compared): readonly string[] {
  const before = agentsOf(compared.before);
  const after = agentsOf(compared.after);
  return Object.keys(after).flatMap((name) => {
    if (!isMap(before[name]) || !isMap(after[name])) return [];
    const reasons = [
      ...(isPromptChanged(name, compared) ? ['its prompt'] : []),
      ...toolReasons(before[name], after[name], name, compared),
      ...connectionReasons(before[name], after[name], name, compared),
    ];
    return reasons.length === 0 ? [] : [`  agents.${name}: ${reasons.join(', ')}`];
  });
}

/** What another prefix costs, above the lines of the agents. */
export const COST_OF_PREFIX =
  'running sessions of these agents get another prefix: their next request is not served from the cache of the ' +
  'provider, and data that it attached to earlier answers, such as signed reasoning, is left out';

function isPromptChanged(name: string, { before, after, values, folder }: Compared): boolean {
  const prompt = (image: ConfigImage) => agent(image, name).system;
  const system = prompt(values);
  const file = isMap(system) && typeof system.file === 'string' ? resolve(folder, system.file) : '';
  return !isDeepStrictEqual(prompt(before), prompt(after)) || fileDigest(before, file) !== fileDigest(after, file);
}

function toolReasons(before: Options, after: Options, name: string, { before: old, after: now, values }: Compared): string[] {
  const isSame = isDeepStrictEqual(asSet(before.tools), asSet(after.tools));
  const entries = new Set(listOf(agent(values, name).tools).map((pattern) => pattern.split('/', 1)[0] ?? ''));
  const changed = [...entries].filter((entry) => isEntryChanged(old, now, `tools.${entry}`, TOOL_LIMITS));
  return [
    ...(isSame ? [] : ['its tools']),
    ...changed.map((entry) => `tools.${entry} (if its tools, their descriptions or their schemas differ)`),
  ];
}

/** Another connection answers first, or it may lead to another model or account. */
function connectionReasons(before: Options, after: Options, name: string, compared: Compared): string[] {
  const first = (options: Options) => listOf(options.model)[0];
  if (first(before) !== first(after)) return ['its model connection'];
  const [id] = listOf(agent(compared.values, name).model).map((entry) => `models.${entry}`);
  return id !== undefined && isEntryChanged(compared.before, compared.after, id, CONNECTION_LIMITS) ? [id] : [];
}

/** Options that do not change the tools of an entry. */
const TOOL_LIMITS: ReadonlySet<string> = new Set(['timeout', 'resultLimit']);
/** Options that do not change which model answers, or what it is sent. */
const CONNECTION_LIMITS: ReadonlySet<string> = new Set(['contextWindow', 'idleTimeout', 'connectTimeout', 'imageLimit']);

function isEntryChanged(before: ConfigImage, after: ConfigImage, id: string, limits: ReadonlySet<string>): boolean {
  const [old, now] = [before.entries[id], after.entries[id]];
  if (!old || !now) return false;
  const decisive = (options: Options) => Object.fromEntries(Object.entries(options).filter(([option]) => !limits.has(option)));
  return old.plugin !== now.plugin || !isDeepStrictEqual([decisive(old.options), old.files], [decisive(now.options), now.files]);
}

/** The options of the agents: the entry of the runtime has them at the top level of the file. */
function agentsOf(image: ConfigImage): Options {
  const runtime = runtimeOf(image);
  return isMap(runtime?.options.agents) ? runtime.options.agents : {};
}

function agent(image: ConfigImage, name: string): Options {
  const options = agentsOf(image)[name];
  return isMap(options) ? options : {};
}

function fileDigest(image: ConfigImage, file: string): unknown {
  return runtimeOf(image)?.files[file];
}

function runtimeOf({ entries }: ConfigImage) {
  return Object.values(entries).find(({ optionsPath, options }) => optionsPath.length === 0 && isMap(options.agents));
}

/** One name, or a list of names. */
function listOf(value: unknown): readonly string[] {
  return (Array.isArray(value) ? value : [value]).filter((item) => typeof item === 'string');
}

function asSet(value: unknown): ReadonlySet<string> {
  return new Set(listOf(value));
}

function isMap(value: unknown): value is Options {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
