/** What a line must have, so that a turn can be run with it. Unknown keys mean nothing. */
const object = { type: 'object' } as const;
const text = { type: 'string' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const flag = { type: 'boolean' } as const;

const parts = {
  type: 'array',
  items: { ...object, required: ['type'], properties: { type: text, text, refusal: text } },
} as const;

const call = {
  ...object,
  required: ['id', 'type'],
  properties: {
    id: text,
    type: { enum: ['function', 'custom'] },
    function: { ...object, required: ['name', 'arguments'], properties: { name: text, arguments: text } },
    custom: { ...object, required: ['name', 'input'], properties: { name: text, input: text } },
  },
  anyOf: [{ required: ['function'] }, { required: ['custom'] }],
} as const;

const message = {
  ...object,
  required: ['role', 'content'],
  properties: {
    role: { enum: ['system', 'user', 'assistant', 'tool', 'function'] },
    content: { anyOf: [text, { type: 'null' }, parts] },
    name: text,
    refusal: text,
    tool_call_id: text,
    tool_calls: { type: 'array', items: call },
  },
  anyOf: [
    { properties: { role: { enum: ['system', 'user', 'function'] }, content: { type: ['string', 'array'] } } },
    { properties: { role: { const: 'assistant' } } },
    { properties: { role: { const: 'tool' }, content: { type: ['string', 'array'] } }, required: ['tool_call_id'] },
  ],
} as const;

const messages = { type: 'array', items: message } as const;

const tools = {
  type: 'array',
  items: {
    ...object,
    required: ['name', 'description', 'inputSchema'],
    properties: { name: text, description: text, inputSchema: object },
  },
} as const;

const usage = {
  ...object,
  required: ['promptTokens', 'completionTokens', 'cachedTokens', 'reasoningTokens'],
  properties: {
    promptTokens: { type: 'number' },
    completionTokens: { type: 'number' },
    cachedTokens: { type: 'number' },
    cacheWriteTokens: { type: 'number' },
    reasoningTokens: { type: 'number' },
  },
} as const;

const event = {
  ...object,
  required: ['type'],
  properties: { type: { enum: ['text', 'reasoning', 'tool-call', 'usage', 'end'] } },
  anyOf: [
    { properties: { type: { enum: ['text', 'reasoning'] }, text }, required: ['text'] },
    {
      properties: { type: { const: 'tool-call' }, id: text, name: text, arguments: text },
      required: ['id', 'name', 'arguments'],
    },
    { properties: { type: { const: 'usage' }, usage }, required: ['usage'] },
    {
      properties: { type: { const: 'end' }, reason: { enum: ['stop', 'length', 'tool_calls', 'content_filter'] } },
      required: ['reason'],
    },
  ],
} as const;

const attempt = { step: count, attempt: { type: 'integer', minimum: 1 } } as const;

const schemas = {
  turn: {
    required: 'id requestId at agent inSession caller metadata incremental prompt messages params request connections'.split(' '),
    properties: {
      id: text,
      requestId: text,
      at: { type: 'number', minimum: 0, maximum: 8_640_000_000_000_000 },
      agent: text,
      parent: { ...object, required: ['turn', 'call'], properties: { turn: text, call: text } },
      inSession: flag,
      caller: {
        ...object,
        required: ['project', 'isIdentified'],
        properties: { project: text, name: text, subject: text, isIdentified: flag },
      },
      user: text,
      transport: text,
      metadata: { ...object, additionalProperties: text },
      incremental: flag,
      prompt: { type: ['string', 'null'] },
      messages,
      lead: messages,
      params: object,
      request: {
        ...object,
        required: ['params', 'clientTools', 'system'],
        properties: { params: object, clientTools: tools, system: messages, maxToolCalls: count, summarize: flag },
      },
      connections: { type: 'array', items: text },
    },
  },
  model_request: {
    required: ['step', 'attempt', 'connection', 'model', 'kept', 'messages', 'params'],
    properties: { ...attempt, connection: text, model: text, kept: count, messages, tools, params: object },
  },
  model_answer: {
    required: ['step', 'attempt', 'events', 'milliseconds'],
    properties: {
      ...attempt,
      events: { type: 'array', items: event },
      error: {
        ...object,
        required: ['kind', 'message'],
        properties: { kind: { enum: ['model', 'turn', 'defect'] }, message: text, code: text, retryAfter: { type: 'number' } },
      },
      milliseconds: { type: 'number' },
    },
  },
  tool: {
    required: ['step', 'id', 'name', 'arguments', 'state'],
    properties: {
      step: count,
      id: text,
      name: text,
      arguments: text,
      agent: text,
      state: { enum: ['ran', 'answered', 'waits', 'client', 'cut'] },
      input: object,
      output: { anyOf: [text, { ...object, required: ['content'], properties: { content: parts } }] },
      failed: { ...object, required: ['message', 'isRefusal'], properties: { message: text, isRefusal: flag } },
      isPostponed: flag,
    },
  },
  end: {
    required: ['status', 'answer', 'milliseconds'],
    properties: { status: text, limit: text, answer: text, usage, milliseconds: { type: 'number' } },
  },
} as const;

export type LineType = keyof typeof schemas;

export function isLineType(type: unknown): type is LineType {
  return typeof type === 'string' && Object.hasOwn(schemas, type);
}

/** The JSON Schema of a kind of line. */
export function schemaOf(type: LineType): Readonly<Record<string, unknown>> {
  return { ...object, ...schemas[type] };
}
