/** Calls that a model writes at once: on each surface, with each way that an answer ends. */
import t from 'tap';
import { TestServer, TRANSPORTS } from '../support/test-server.js';

const server = await TestServer.start(
  t,
  `${TRANSPORTS}  responses: {}
  messages: {}
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" } }
`,
);

/** An answer whose calls come in turns, piece by piece, with a text between. */
function interleaved(finishReason: string | undefined) {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const piece = (index: number, part: string, head: object = {}) =>
    chunk({ tool_calls: [{ index, ...head, function: { ...('id' in head && { name: 'read' }), arguments: part } }] });
  const raw = [
    chunk({ role: 'assistant', content: 'Both. ' }),
    piece(0, '{"n":', { id: 'a', type: 'function' }),
    piece(1, '{"n":', { id: 'b', type: 'function' }),
    piece(2, '{"n":', { id: 'c', type: 'function' }),
    ...[piece(0, '1'), piece(2, '3'), piece(1, '2')],
    ...[piece(2, '}'), piece(1, '}'), piece(0, '}')],
  ];
  return finishReason === undefined
    ? ({ raw, ending: 'cut' } as const)
    : { raw: [...raw, chunk({}, finishReason), 'data: [DONE]\n\n'] };
}

/** How each surface says that the answer ended. */
const ENDINGS = [
  { model: 'tool_calls', chat: 'tool_calls', messages: 'tool_use', responses: 'completed' },
  { model: 'stop', chat: 'tool_calls', messages: 'tool_use', responses: 'completed' },
  { model: 'length', chat: 'length', messages: 'max_tokens', responses: 'max_output_tokens' },
  { model: 'content_filter', chat: 'content_filter', messages: 'refusal', responses: 'content_filter' },
  { model: undefined, chat: 'error', messages: 'error', responses: 'model_failed' },
];
const WHOLE = ['{"n":1}', '{"n":2}', '{"n":3}'];
/** The last brace is kept back until the answer is complete: some servers send arguments twice. */
const CUT = WHOLE.map((text) => text.slice(0, -1));
const schema = { type: 'object', properties: { n: { type: 'integer' } } };

async function eventsOf(path: string, body: object): Promise<readonly Event[]> {
  const { text } = await server.request('POST', path, {}, { model: 'fast', max_tokens: 99, stream: true, ...body });
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Event);
}

type Fields = Readonly<Record<string, string | undefined>>;
interface Event {
  readonly type?: string;
  readonly index?: number;
  readonly error?: unknown;
  readonly delta?: Fields | string;
  readonly content_block?: Fields;
  readonly choices?: readonly {
    readonly delta: { readonly tool_calls?: readonly { readonly index: number; readonly function: Fields }[] };
    readonly finish_reason: string | null;
  }[];
  readonly item?: Fields;
  readonly item_id?: string;
  readonly response?: {
    readonly status: string;
    readonly error: { readonly code: string } | null;
    readonly incomplete_details: { readonly reason: string } | null;
    readonly output: readonly Fields[];
  };
}

for (const ending of ENDINGS) {
  const name = ending.model ?? 'a broken connection';
  const messages = [{ role: 'user', content: 'Read all.' }];
  const isComplete = ending.responses === 'completed';
  const all = isComplete ? WHOLE : CUT;

  t.test(`calls written at once that end with ${name}, in chat completions`, async (t) => {
    server.models.enqueue(interleaved(ending.model));
    const tools = [{ type: 'function', function: { name: 'read', parameters: schema } }];
    const events = await eventsOf('/v1/chat/completions', { messages, tools });
    const calls: string[] = [];
    let end: string | undefined;
    for (const { choices, error } of events) {
      if (error) end = 'error';
      const [choice] = choices ?? [];
      for (const { index, function: made } of choice?.delta.tool_calls ?? []) {
        calls[index] = (calls[index] ?? '') + (made.arguments ?? '');
      }
      end = choice?.finish_reason ?? end;
    }
    t.equal(end, ending.chat);
    t.strictSame(calls, all, 'each fragment that was sent belongs to its call');
  });

  t.test(`CL-20 calls written at once that end with ${name}, in Messages`, async (t) => {
    server.models.enqueue(interleaved(ending.model));
    const events = await eventsOf('/v1/messages', { messages, tools: [{ name: 'read', input_schema: schema }] });
    const calls: string[] = [];
    let open: number | undefined;
    let last = -1;
    let end: string | undefined;
    for (const { type, index, content_block: block, delta } of events) {
      if (type === 'error') end = 'error';
      else if (type === 'content_block_start') {
        t.strictSame([open, index], [undefined, last + 1], 'one block after the other');
        last += 1;
        open = index;
        if (block?.type === 'tool_use') calls.push('');
      } else if (type === 'content_block_delta') {
        t.equal(index, open);
        const { partial_json: piece } = typeof delta === 'object' ? delta : {};
        if (piece !== undefined) calls.push((calls.pop() ?? '') + piece);
      } else if (type === 'content_block_stop') open = undefined;
      else if (type === 'message_delta' && typeof delta === 'object') end = delta.stop_reason;
    }
    t.equal(end, ending.messages);
    if (ending.model === undefined) return; // a stream that fails closes nothing
    t.equal(open, undefined, 'each block is closed');
    t.strictSame(calls.toSorted(), all, 'no call is lost');
  });

  t.test(`calls written at once that end with ${name}, in Responses`, async (t) => {
    server.models.enqueue(interleaved(ending.model));
    const tools = [{ type: 'function', name: 'read', parameters: schema }];
    const events = await eventsOf('/v1/responses', { input: 'Read all.', tools });
    const { response } = events.at(-1) ?? {};
    t.equal(response?.error?.code ?? response?.incomplete_details?.reason ?? response?.status, ending.responses);
    const calls = (response?.output ?? []).filter(({ type }) => type === 'function_call');
    t.strictSame(
      calls.map((call) => call.arguments),
      all,
    );
    t.ok(calls.every(({ status }) => status === (isComplete ? 'completed' : 'incomplete')));
    const ids = (wanted: string) =>
      events.flatMap(({ type, item }) => (type === wanted && item ? [String(item.id)] : [])).toSorted();
    t.strictSame(ids('response.output_item.done'), ids('response.output_item.added'), 'each item that began has ended');
    for (const { id } of calls) {
      const pieces = events.filter((event) => event.item_id === id && event.type === 'response.function_call_arguments.delta');
      t.equal(pieces.map(({ delta }) => delta).join(''), calls.find((call) => call.id === id)?.arguments);
    }
  });
}
