import type { Infer, JsonSchema } from '../host/schema-types.js';

const duration = { type: 'string', format: 'duration' } as const;

/** What stands under one name of `agents`. */
const agentSchema = {
  type: 'object',
  properties: {
    model: {
      description: 'A name under `models`, or a list of them: the first that works answers.',
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, uniqueItems: true },
      ],
    },
    system: {
      description: 'What the model is told before the conversation: text, or `{ file: PATH }`.',
      anyOf: [
        { type: 'string' },
        {
          type: 'object',
          properties: { file: { type: 'string', minLength: 1 } },
          required: ['file'],
          additionalProperties: false,
        },
      ],
    },
    tools: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      description: 'Names under `tools`: `name` is all that the entry offers, `name/tool` one of it, `name/*` all.',
      default: [],
    },
    params: {
      type: 'object',
      additionalProperties: true,
      description: 'Sampling parameters sent to the model; they win over a caller’s.',
      default: {},
    },
    clientTools: {
      type: 'string',
      enum: ['ignore', 'passthrough'],
      description:
        'What becomes of tools that a caller sends: not offered to the model, or handed back to the caller when the model calls them.',
      default: 'ignore',
    },
    maxSteps: { type: 'integer', minimum: 1, description: 'Model calls in one turn; then the answer so far.', default: 16 },
    maxToolCalls: { type: 'integer', minimum: 0, description: 'Tool calls in one turn; then the answer so far.', default: 64 },
    maxTokens: { type: 'integer', minimum: 1, description: 'Tokens of all model calls of one turn; then the answer so far.' },
    timeout: { ...duration, description: 'How long one turn may take; then it has failed.', default: '10m' },
    project: { type: 'string', minLength: 1, description: 'The tenant that the agent belongs to.', default: 'default' },
    description: { type: 'string', description: 'Shown where agents are listed for people.' },
    toolVisibility: {
      type: 'string',
      enum: ['full', 'names', 'none'],
      description:
        'What callers are shown of tool calls, where a surface shows any: all, without arguments and results, or nothing.',
      default: 'full',
    },
    history: {
      description:
        'What the model is given of a long session: the newest turns that fit (`truncate`), the same behind a summary of the older ones that the model makes (`summarize`), or an error where not all fit (`error`). `{ policy, maxMessages, maxTokens }` sets limits of its own.',
      anyOf: [
        { type: 'string', enum: ['truncate', 'summarize', 'error'] },
        {
          type: 'object',
          properties: {
            policy: { type: 'string', enum: ['truncate', 'summarize', 'error'] },
            maxMessages: { type: 'integer', minimum: 0 },
            maxTokens: { type: 'integer', minimum: 0 },
          },
          additionalProperties: false,
        },
      ],
      default: 'truncate',
    },
    onBusy: {
      type: 'string',
      enum: ['enqueue', 'reject', 'interrupt'],
      description:
        'What happens to a turn whose session is busy with another: it waits, it is refused, or it takes the other’s place.',
      default: 'enqueue',
    },
    onRestart: {
      type: 'string',
      enum: ['rollback', 'keep-input'],
      description: 'What becomes of a turn that a crash of the server cut: nothing is kept of it, or what the caller had said.',
      default: 'rollback',
    },
    onDisconnect: {
      type: 'string',
      enum: ['cancel', 'continue'],
      description: 'What becomes of a turn of a session whose caller goes away: it ends, or it runs to its end and is kept.',
      default: 'cancel',
    },
  },
  required: ['model'],
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The top-level keys of the configuration that are the agent runtime's options. */
export const runtimeSchema = {
  type: 'object',
  properties: {
    agents: { type: 'object', additionalProperties: agentSchema, description: 'The agents, by name.', default: {} },
    projects: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        properties: { defaultAgent: { type: 'string', minLength: 1, description: 'Answers to names that nobody has.' } },
        additionalProperties: false,
      },
      description: 'The tenants besides `default`, by name.',
      default: {},
    },
    defaultAgent: { type: 'string', minLength: 1, description: 'Answers to names that nobody has, in the project `default`.' },
    limits: {
      type: 'object',
      properties: {
        runningTurns: { type: 'integer', minimum: 1, description: 'Turns that run at once in this process.', default: 2000 },
        queuedTurns: {
          type: 'integer',
          minimum: 0,
          description: 'Turns that wait for one of those; beyond, callers get 503.',
          default: 1000,
        },
        queuedPerSession: {
          type: 'integer',
          minimum: 0,
          description: 'Turns that wait for an earlier turn of their session; beyond, callers get 409.',
          default: 8,
        },
      },
      additionalProperties: false,
      description: 'Limits of the whole process.',
      default: {},
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type RuntimeSettings = Infer<typeof runtimeSchema>;
export type AgentSettings = Infer<typeof agentSchema>;
export type LimitSettings = RuntimeSettings['limits'];
