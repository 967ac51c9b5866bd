import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import { DEFAULT_PROJECT, nearest } from '@plugboard/kernel/contracts';
import type { AgentSettings, RuntimeSettings } from '../../config.js';
import { WRITE } from './approval-rule.js';

/**
 * Finds what the schema cannot express: unknown references, name clashes, unreadable prompt files.
 */
export function checkConfig(settings: RuntimeSettings, context: CheckContext): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const models = context.entries('models');
  const projects = new Set([DEFAULT_PROJECT, ...Object.keys(settings.projects)]);

  for (const [name, agent] of Object.entries(settings.agents)) {
    const at = (...path: (string | number)[]) => ['agents', name, ...path];
    const fault = nameFault(name);
    if (fault !== undefined) problems.push({ path: at(), message: `the name of an agent ${fault}` });
    if (models.includes(name)) {
      problems.push({
        path: at(),
        message: `an agent and a model must not have the same name, and "${name}" is also under models`,
      });
    }
    if (!projects.has(agent.project)) {
      problems.push({ path: at('project'), message: unknown('project', agent.project, [...projects], 'projects') });
    }
    problems.push(...checkModels(agent, models, context.disabled('models'), at));
    agent.tools.forEach((pattern, index) => {
      const entry = toolEntry(pattern);
      const known = context.entries('tools');
      if (!known.includes(entry)) problems.push({ path: at('tools', index), message: unknown('tool', entry, known, 'tools') });
    });
    const approve = typeof agent.approve === 'string' ? [] : agent.approve;
    approve.forEach((pattern, index) => {
      const entry = toolEntry(pattern);
      if (pattern === WRITE || agent.tools.some((tool) => toolEntry(tool) === entry)) return;
      const known = [...new Set(agent.tools.map(toolEntry)), WRITE];
      problems.push({ path: at('approve', index), message: unknown('tool', entry, known, `the agent's tools`) });
    });
    problems.push(...checkPrompt(agent, context, at), ...checkHistory(agent, at));
  }

  const defaults: [readonly (string | number)[], string | undefined, string][] = [
    [['defaultAgent'], settings.defaultAgent, DEFAULT_PROJECT],
    ...Object.entries(settings.projects).map(([project, { defaultAgent }]): [string[], string | undefined, string] => [
      ['projects', project, 'defaultAgent'],
      defaultAgent,
      project,
    ]),
  ];
  for (const [path, name, project] of defaults) {
    if (name === undefined) continue;
    const agent = Object.hasOwn(settings.agents, name) ? settings.agents[name] : undefined;
    if (!agent) problems.push({ path, message: unknown('agent', name, Object.keys(settings.agents), 'agents') });
    else if (agent.project !== project) {
      problems.push({
        path,
        message: `agent "${name}" belongs to project "${agent.project}", and a default agent must belong to its own project`,
      });
    }
  }
  return problems;
}

/** Maximum length of an agent's name in a request, in bytes of UTF-8. */
const MAX_NAME = 256;

/** Why a request could not select an agent of this name; undefined if it can. */
function nameFault(name: string): string | undefined {
  if (name.trim() === '') return 'must not be blank';
  if (name !== name.trim()) return 'must not begin or end with white space';
  return Buffer.byteLength(name) > MAX_NAME ? `must not be longer than ${MAX_NAME} bytes` : undefined;
}

/** The entry of a tool pattern: `name`, `name/tool` or `name/*`. */
export function toolEntry(pattern: string): string {
  const slash = pattern.indexOf('/');
  return slash < 0 ? pattern : pattern.slice(0, slash);
}

export function modelNames(agent: AgentSettings): readonly string[] {
  return typeof agent.model === 'string' ? [agent.model] : agent.model;
}

/** The smallest budget of a history, in tokens, that leaves space for a summary. */
export const MIN_SUMMARY_BUDGET = 400;

type At = (...path: (string | number)[]) => (string | number)[];

function checkModels(agent: AgentSettings, models: readonly string[], withdrawn: readonly string[], at: At): ConfigProblem[] {
  const names = modelNames(agent);
  const pathOf = (index: number) => (typeof agent.model === 'string' ? at('model') : at('model', index));
  const problems = names.flatMap((name, index) =>
    models.includes(name) ? [] : [{ path: pathOf(index), message: unknown('model', name, models, 'models') }],
  );
  if (problems.length === 0 && names.every((name) => withdrawn.includes(name))) {
    const all = names.map((name) => `"${name}"`).join(', ');
    problems.push({
      path: at('model'),
      message: `no model is left: ${all} ${names.length === 1 ? 'is' : 'are'} disabled (optional, unless)`,
    });
  }
  return problems;
}

function checkPrompt(agent: AgentSettings, context: CheckContext, at: At): ConfigProblem[] {
  if (typeof agent.system !== 'object') return [];
  const { file } = agent.system;
  try {
    context.readFile(file);
    return [];
  } catch (error) {
    return [
      {
        path: at('system', 'file'),
        message: `cannot read the prompt ${context.resolvePath(file)}: ${(error as NodeJS.ErrnoException).code ?? error}`,
      },
    ];
  }
}

function checkHistory({ history }: AgentSettings, at: At): ConfigProblem[] {
  if (typeof history === 'string' || history.policy !== 'summarize') return [];
  if (history.maxTokens === undefined || history.maxTokens >= MIN_SUMMARY_BUDGET) return [];
  return [
    {
      path: at('history', 'maxTokens'),
      message: `a summary needs at least ${MIN_SUMMARY_BUDGET} tokens; raise maxTokens or use the policy "truncate"`,
    },
  ];
}

function unknown(noun: string, name: string, known: readonly string[], section: string): string {
  if (known.length === 0) return `unknown ${noun} "${name}": there are no entries under ${section}`;
  const near = nearest(name, known);
  return near === undefined
    ? `unknown ${noun} "${name}"; ${section} has ${known.map((one) => `"${one}"`).join(', ')}`
    : `unknown ${noun} "${name}", did you mean "${near}"?`;
}
