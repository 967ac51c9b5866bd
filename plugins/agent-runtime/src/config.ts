import type { Infer, JsonSchema } from '@plugboard/kernel';
import { SAMPLING_PARAMETERS } from '@plugboard/kernel/contracts';

const duration = { type: 'string', format: 'duration' } as const;
const size = { type: 'string', format: 'size' } as const;
/** A limit of at least one, or one that may forbid everything. */
const limit = { type: 'integer', minimum: 1 } as const;
const limitOrNone = { type: 'integer', minimum: 0 } as const;

/** One entry of `agents`. */
const agentSchema = {
  type: 'object',
  description: 'An agent: a model connection with a prompt, tools and limits. Its name is the `model` of requests.',
  properties: {
    model: {
      description: 'A name under `models`, or a list of names: the first connection that works answers.',
      anyOf: [
        { type: 'string', minLength: 1, nameOf: 'models' },
        { type: 'array', items: { type: 'string', minLength: 1, nameOf: 'models' }, minItems: 1, uniqueItems: true },
      ],
    },
    system: {
      description: 'The system prompt: text, or `{ file: PATH }`.',
      anyOf: [
        { type: 'string' },
        {
          type: 'object',
          properties: {
            file: { type: 'string', minLength: 1, description: 'Path of the prompt, relative to the configuration file.' },
          },
          required: ['file'],
          additionalProperties: false,
        },
      ],
    },
    tools: {
      type: 'array',
      items: { type: 'string', minLength: 1, nameOf: 'tools' },
      description:
        'Tools the agent may call, by their entry under `tools`: `name` and `name/*` allow all tools of the entry, ' +
        '`name/tool` one.',
      default: [],
    },
    approve: {
      description:
        'Tools whose calls a person must approve: `write` for all that do not only read, or patterns such as `shell/*` and ' +
        '`files/write_*`, and `write`.',
      anyOf: [
        { type: 'string', enum: ['write'] },
        { type: 'array', items: { type: 'string', minLength: 1 } },
      ],
      default: [],
    },
    approvalExpires: {
      ...duration,
      description: 'How long a call waits for approval. Then it counts as denied.',
      default: '15m',
    },
    params: {
      type: 'object',
      properties: {
        temperature: { type: 'number', description: 'Randomness of the answer.' },
        top_p: { type: 'number', description: 'Share of the likeliest tokens that are considered.' },
        max_completion_tokens: { type: 'integer', description: 'Tokens of one model call, reasoning included.' },
        max_tokens: { type: 'integer', description: 'The older name of `max_completion_tokens`.' },
        frequency_penalty: { type: 'number', description: 'Makes frequent tokens less likely.' },
        presence_penalty: { type: 'number', description: 'Makes tokens that have occurred less likely.' },
        seed: { type: 'integer', description: 'The same seed asks for the same answer.' },
        logprobs: { type: 'boolean', description: 'Asks for the probabilities of tokens.' },
        top_logprobs: { type: 'integer', description: 'Likely tokens to list at each place.' },
        parallel_tool_calls: { type: 'boolean', description: 'Whether the model may call several tools at once.' },
      },
      additionalProperties: true,
      propertyNames: { examples: SAMPLING_PARAMETERS }, // for suggestions
      description: 'Sampling parameters sent to the model. They override those of a request.',
      default: {},
    },
    clientTools: {
      type: 'string',
      enum: ['ignore', 'passthrough'],
      description:
        'Tools in a request: `ignore` drops them, `passthrough` returns their calls to the caller. By default chat ' +
        'completions ignore them, other APIs pass them through.',
    },
    maxSteps: { ...limit, description: 'Model calls per turn. Then it ends with the answer so far.', default: 16 },
    maxToolCalls: {
      ...limitOrNone,
      description: 'Calls of the agent’s own tools per turn. Then it ends with the answer so far.',
      default: 64,
    },
    maxTokens: { ...limit, description: 'Tokens of all model calls per turn. Then it ends with the answer so far.' },
    timeout: { ...duration, description: 'Time limit of one turn. Then it fails.', default: '10m' },
    project: {
      type: 'string',
      minLength: 1,
      nameOf: 'projects',
      examples: ['default'],
      description: 'The project (tenant) the agent belongs to.',
      default: 'default',
    },
    description: { type: 'string', description: 'A description for people, shown in lists of agents.' },
    toolVisibility: {
      type: 'string',
      enum: ['full', 'names', 'none'],
      description: 'What callers see of tool calls, on routes that show them: everything, names only, or nothing.',
      default: 'full',
    },
    history: {
      description:
        'What the model receives of a session that no longer fits: the newest turns (`truncate`), a summary of the older ' +
        'ones too (`summarize`), or an error (`error`).',
      anyOf: [
        { type: 'string', enum: ['truncate', 'summarize', 'error'] },
        {
          type: 'object',
          properties: {
            policy: {
              type: 'string',
              enum: ['truncate', 'summarize', 'error'],
              description: 'The policy; `truncate` if absent.',
            },
            maxMessages: { ...limitOrNone, description: 'Messages of the history sent to the model.' },
            maxTokens: { ...limitOrNone, description: 'Tokens of the history sent to the model.' },
          },
          additionalProperties: false,
        },
      ],
      default: 'truncate',
    },
    onBusy: {
      type: 'string',
      enum: ['enqueue', 'reject', 'interrupt'],
      description: 'A request to a session that is running a turn: it waits, it is refused, or it interrupts the running turn.',
      default: 'enqueue',
    },
    onRestart: {
      type: 'string',
      enum: ['rollback', 'keep-input'],
      description: 'A turn that a crash of the server interrupted: it is dropped, or its input is kept in the session.',
      default: 'rollback',
    },
    onDisconnect: {
      type: 'string',
      enum: ['cancel', 'continue'],
      description: 'A turn whose caller disconnects: it is cancelled, or it continues and is kept in the session.',
      default: 'cancel',
    },
  },
  required: ['model'],
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options of the runtime: keys of the configuration's top level. */
export const configSchema = {
  type: 'object',
  properties: {
    agents: { type: 'object', additionalProperties: agentSchema, description: 'The agents, by name.', default: {} },
    projects: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        description: 'A project. Its callers reach the agents that name it.',
        properties: {
          defaultAgent: {
            type: 'string',
            minLength: 1,
            nameOf: 'agents',
            description: 'The agent used when `model` matches nothing.',
          },
          runningTurns: {
            ...limit,
            description: 'Turns of this project that run at the same time, instead of `limits.runningTurnsPerProject`.',
          },
          requestsPerMinute: {
            ...limit,
            description: 'Requests per minute of all callers of this project together. Beyond the limit, they get 429.',
          },
        },
        additionalProperties: false,
      },
      description: 'The projects (tenants) other than `default`, by name. Every token of a project reaches all its sessions.',
      default: {},
    },
    defaultAgent: {
      type: 'string',
      minLength: 1,
      nameOf: 'agents',
      description: 'The agent used when `model` matches nothing, for the project `default`.',
    },
    limits: {
      type: 'object',
      properties: {
        runningTurns: { ...limit, description: 'Turns that run at the same time in this process.', default: 2000 },
        runningTurnsPerProject: {
          ...limit,
          description:
            'Turns of one project that run at the same time; further ones wait. By default three quarters of ' +
            '`runningTurns`, or all of them if there is no project besides `default`.',
        },
        runningTurnsPerCaller: {
          ...limit,
          description:
            'Turns of one token or JWT subject that run at the same time; further ones wait. By default half of ' +
            '`runningTurns`, or three quarters if there is no project besides `default`.',
        },
        queuedTurns: {
          ...limitOrNone,
          description: 'Turns that wait for a place. Beyond it, callers get 503, those with the most waiting turns first.',
          default: 1000,
        },
        queuedPerSession: {
          ...limitOrNone,
          description: 'Turns that wait for an earlier turn of their session. Beyond the limit, callers get 409.',
          default: 8,
        },
        drain: {
          ...duration,
          description:
            'How long running turns may go on after the server was asked to stop. Then they fail, and the exit code is 1.',
          default: '30s',
        },
        memory: {
          ...size,
          description:
            'Memory for everything that is held for callers, who share it. Beyond it, turns wait, then they get 503. ' +
            'Default: half of the heap limit.',
          examples: ['1gb'],
        },
        answerSize: {
          ...size,
          description:
            'The maximum size of the answer of a turn: text, reasoning and arguments of tool calls. Beyond it, the turn fails.',
          default: '16mb',
        },
      },
      additionalProperties: false,
      description: 'Limits of the whole process.',
      default: {},
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type RuntimeSettings = Infer<typeof configSchema>;
export type AgentSettings = Infer<typeof agentSchema>;
