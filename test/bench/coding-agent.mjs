// What a coding agent sends with each step: 60 tools and a conversation of calls, 150 KB together.
const TOOLS = 60;
const BYTES = 150_000;
const QUESTION = 'burst';

const words = (length) => 'Reads a file and returns its lines, each with its number. '.repeat(length / 50).slice(0, length);
const property = (name) => [name, { type: 'string', description: `The ${name} of the call. ${words(60)}` }];
const schema = {
  type: 'object',
  properties: Object.fromEntries(['path', 'pattern', 'replacement', 'mode'].map(property)),
  required: ['path'],
  additionalProperties: false,
};
const tools = Array.from({ length: TOOLS }, (_, index) => ({ name: `tool_${index}`, description: words(300) }));
const code = "export function add(a: number, b: number): number {\n  return a + b; // '\"'\n}\n".repeat(25);

/** The same step in the Messages API and in chat completions. */
export const messagesStep = grown((steps) => ({
  model: 'coder',
  stream: true,
  max_tokens: 32_000,
  system: [{ type: 'text', text: words(8_000), cache_control: { type: 'ephemeral' } }],
  tools: tools.map((tool) => ({ ...tool, input_schema: schema })),
  messages: [
    { role: 'user', content: [{ type: 'text', text: words(2_000) }] },
    ...numbers(steps).flatMap((step) => [
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: `call_${step}`, name: 'tool_1', input: { path: `src/${step}.ts` } }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `call_${step}`, content: code }] },
    ]),
    { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] },
    { role: 'user', content: QUESTION },
  ],
}));

export const chatStep = grown((steps) => ({
  model: 'coder',
  stream: true,
  max_completion_tokens: 32_000,
  tools: tools.map((tool) => ({ type: 'function', function: { ...tool, parameters: schema } })),
  messages: [
    { role: 'system', content: words(8_000) },
    { role: 'user', content: words(2_000) },
    ...numbers(steps).flatMap((step) => [
      { role: 'assistant', content: null, tool_calls: [callOf(step)] },
      { role: 'tool', tool_call_id: `call_${step}`, content: code },
    ]),
    { role: 'assistant', content: 'Done.' },
    { role: 'user', content: QUESTION },
  ],
}));

function callOf(step) {
  return { id: `call_${step}`, type: 'function', function: { name: 'tool_1', arguments: `{"path":"src/${step}.ts"}` } };
}

/** The request with as many steps as fit. */
function grown(requestOf) {
  let steps = 0;
  while (JSON.stringify(requestOf(steps + 1)).length <= BYTES) steps++;
  return requestOf(steps);
}

function numbers(count) {
  return Array.from({ length: count }, (_, index) => index);
}
