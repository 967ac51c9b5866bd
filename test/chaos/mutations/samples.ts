/** Valid requests, which mutations start from. */

/** What the server gave the attacker: mutated requests name it. */
export interface Known {
  /** Ids of stored responses. */
  readonly responses: readonly string[];
  /** Ids of output items. */
  readonly items: readonly string[];
  readonly conversations: readonly string[];
}

const SCHEMA = {
  type: 'object',
  properties: {
    q: { type: 'string', enum: ['a', 'b'] },
    filter: { type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/range' }] } },
  },
  required: ['q'],
  additionalProperties: false,
  $defs: { range: { type: 'object', properties: { from: { type: ['number', 'null'] }, to: { $ref: '#/$defs/range' } } } },
};

const IMAGE = 'data:image/png;base64,iVBORw0KGgo=';

/** Bodies by route. A route without any gets all of them. */
export function bodiesOf(route: string, known: Known): readonly object[] {
  const all = samples(known);
  return all[route] ?? Object.values(all).flat();
}

/** Messages of a WebSocket. */
export function messagesOf(known: Known): readonly object[] {
  const [response = 'resp_x'] = known.responses;
  return [
    ...responses(known).map((body) => ({ type: 'response.create', ...body })),
    { type: 'response.create', model: 'assistant', input: 'Hi', stream_id: 'one', generate: false },
    { type: 'response.cancel', response_id: response },
    { type: 'svc:response.resume', response_id: response, starting_after: 1 },
    { type: 'svc:conversation.watch', conversation: known.conversations[0] ?? null },
    { type: 'svc:ping', id: 'ping' },
  ];
}

function samples(known: Known): Readonly<Record<string, readonly object[]>> {
  const [conversation = 'conv_x'] = known.conversations;
  const items = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }];
  return {
    'POST /v1/chat/completions': chats(conversation),
    'POST /v1/responses': responses(known),
    'POST /v1/responses/compact': responses(known),
    'POST /v1/responses/input_tokens': responses(known),
    'POST /v1/conversations': [{ agent: 'assistant', metadata: { a: 'b' }, items }],
    'POST /v1/conversations/:id': [{ metadata: { a: 'b' } }],
    'POST /v1/conversations/:id/fork': [{}, { after: 1 }],
    'POST /v1/conversations/:id/items': [{ items }],
    'POST /v1/ephemeral_tokens': [{ scopes: ['chat'], agents: ['assistant'] }],
  };
}

function chats(conversation: string): readonly object[] {
  const tools = [{ type: 'function', function: { name: 'find', description: 'Finds', parameters: SCHEMA, strict: true } }];
  const call = { id: 'call_1', type: 'function', function: { name: 'find', arguments: '{"q":"a"}' } };
  const messages = [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'image_url', image_url: { url: IMAGE, detail: 'low' } },
      ],
    },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: '{"found":[1,2,3]}' },
    { role: 'user', content: 'And?', name: 'ann' },
  ];
  return ['assistant', 'translated'].flatMap((model) => [
    { model, messages, tools, tool_choice: 'auto', parallel_tool_calls: true },
    {
      model,
      messages: messages.slice(0, 2),
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0.5,
      stop: ['x'],
    },
    { model, messages: messages.slice(1, 2), session_id: 'room', user: 'ann', metadata: { a: 'b' }, logit_bias: { 1: 2 } },
    { model, messages: messages.slice(4), conversation, max_completion_tokens: 5 },
    {
      model,
      messages: messages.slice(4),
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA, strict: true } },
    },
  ]);
}

function responses({
  responses: [response = 'resp_x'],
  items: [item = 'msg_x'],
  conversations: [conversation = 'conv_x'],
}: Known): readonly object[] {
  const input = [
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Hi' },
        { type: 'input_image', image_url: IMAGE },
      ],
    },
    { type: 'function_call', call_id: 'call_1', name: 'find', arguments: '{"q":"a"}' },
    { type: 'function_call_output', call_id: 'call_1', output: '{"found":[1,2,3]}' },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm' }] },
    { role: 'user', content: 'And?' },
  ];
  const tools = [{ type: 'function', name: 'find', parameters: SCHEMA, strict: true }];
  return ['assistant', 'translated'].flatMap((model) => [
    { model, input, tools, tool_choice: 'auto', store: false },
    {
      model,
      input: [
        { type: 'item_reference', id: item },
        { role: 'user', content: 'Hi' },
      ],
      metadata: { a: 'b' },
    },
    { model, input: 'Hi', previous_response_id: response, stream: true },
    { model, input: 'Hi', conversation, instructions: 'Be brief.', reasoning: { summary: 'auto', effort: 'low' } },
    {
      model,
      input: 'Hi',
      text: { format: { type: 'json_schema', name: 'x', schema: SCHEMA, strict: true } },
      max_output_tokens: 50,
    },
  ]);
}
