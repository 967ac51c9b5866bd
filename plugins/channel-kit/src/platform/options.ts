import type { CheckContext, ConfigProblem, JsonSchema } from '@plugboard/kernel';
import { DEFAULT_PROJECT, nearest } from '@plugboard/kernel/contracts';

/** The options that all channels share. A platform with other defaults changes them in its own. */
export const channelOptions = {
  agent: { type: 'string', minLength: 1, description: 'Agent that answers, unless a chat chooses another one.' },
  agents: {
    type: 'array',
    items: { type: 'string', minLength: 1 },
    minItems: 1,
    uniqueItems: true,
    description: 'Agents that `/agent` offers, besides `agent`. By default all of its project.',
  },
  pairing: {
    type: 'boolean',
    default: false,
    description: 'Whether a sender who is not in `allow` must be paired before an agent answers: `plugboard pair`.',
  },
  allow: {
    type: 'array',
    items: { type: 'string', minLength: 1 },
    minItems: 1,
    uniqueItems: true,
    description: 'Ids of senders who need no pairing. Without `pairing`, they alone get an answer.',
  },
  waiting: {
    type: 'string',
    format: 'size',
    default: '64mb',
    description: 'Messages and replies that wait at once. A message beyond is refused.',
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** The option of platforms that have groups. */
export const groupsOption = {
  type: 'string',
  enum: ['mention', 'all', 'off'],
  default: 'mention',
  description: 'When the agent answers in groups: if it is mentioned, replied to or commanded; always; never.',
} as const satisfies JsonSchema;

/** The options of a channel, with defaults. */
export interface ChannelOptions {
  readonly agent: string;
  readonly agents?: readonly string[] | undefined;
  readonly pairing: boolean;
  readonly allow?: readonly string[] | undefined;
  readonly groups?: 'mention' | 'all' | 'off' | undefined;
  readonly waiting: string;
}

/** Finds the mistakes in the options that all channels share: unknown agents, and two projects. */
export function checkChannel(
  { agent, agents = [] }: Pick<ChannelOptions, 'agent' | 'agents'>,
  context: Pick<CheckContext, 'entries'>,
): readonly ConfigProblem[] {
  const known = context.entries('agents');
  const named = [{ name: agent, path: ['agent'] }, ...agents.map((name, index) => ({ name, path: ['agents', index] }))];
  const unknown = named.filter(({ name }) => !known.includes(name));
  if (unknown.length > 0) return unknown.map(({ name, path }) => ({ path, message: unknownAgent(name, known) }));
  const project = projectOf(agent, context);
  return named
    .filter(({ name }) => projectOf(name, context) !== project)
    .map(({ name, path }) => ({
      path,
      message: `the agent "${name}" belongs to the project "${projectOf(name, context)}", and "${agent}" to "${project}"; a channel has one project`,
    }));
}

/** The project of an agent, as the file says. */
function projectOf(agent: string, { entries }: Pick<CheckContext, 'entries'>): string {
  const projects = entries('projects');
  return projects.find((project) => entries('agents', { project }).includes(agent)) ?? DEFAULT_PROJECT;
}

function unknownAgent(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  const cure = near === undefined ? `known: ${known.join(', ') || 'none'}` : `did you mean "${near}"?`;
  return `there is no agent "${name}"; ${cure}`;
}
