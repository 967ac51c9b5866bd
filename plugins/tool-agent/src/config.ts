import type { Infer, JsonSchema } from '@plugboard/kernel';

/** Levels below the first turn where the file sets none. */
export const DEFAULT_DEPTH = 3;

export const configSchema = {
  type: 'object',
  properties: {
    agent: { type: 'string', minLength: 1, nameOf: 'agents', description: 'The agent to ask: a name under `agents`.' },
    description: {
      type: 'string',
      minLength: 1,
      description: 'For the model: what the agent does, and when to ask it.',
      examples: ['Finds facts in the library. Ask one question at a time.'],
    },
    session: {
      type: 'string',
      enum: ['none', 'parent'],
      description:
        'What the agent remembers of earlier calls: nothing, or those of the same session (`parent`), where calls wait for ' +
        'each other.',
      default: 'none',
    },
    depth: {
      type: 'integer',
      minimum: 1,
      description:
        'Levels of agents below the first one of a turn that get answers by this tool; agents further down do not have it. ' +
        'Agents that ask each other in a circle need it. Default: 3.',
    },
    maxChildren: {
      type: 'integer',
      minimum: 1,
      description: 'Calls of this tool that run at once in a turn and the turns below it. Further ones wait.',
      default: 8,
    },
  },
  required: ['agent', 'description'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type AgentToolConfig = Infer<typeof configSchema>;
