import type { AgentEvent } from '@plugboard/kernel';
import type { AssistantMessage } from '@plugboard/kernel/contracts';
import { NO_USAGE, OPEN } from '@plugboard/kernel/contracts';
import t from 'tap';
import { eventsOf, finished, started, startRoutes, step, text } from './support/route.js';

type Blocks = readonly { readonly type: string; readonly data?: string; readonly [field: string]: unknown }[];

const tools = [{ name: 'read', input_schema: { type: 'object' } }];
const thinking = { type: 'adaptive', display: 'omitted' };
const ofMessage = { connection: 'fast', prefix: 'p1', data: { signature: 'the secret of the model' } };
const ofCall = { connection: 'fast', prefix: 'p1', data: 7 };
const call = (id: string, extra?: object): AgentEvent =>
  ({ type: 'tool-call', id, name: 'read', arguments: `{"id":"${id}"}`, extra }) as AgentEvent;
const turn: AgentEvent[][] = [
  [started],
  [step(1), { type: 'reasoning', text: 'Hm.' }, text('Let me see.')],
  [{ type: 'extra', extra: ofMessage }, call('a', ofCall), call('b')],
  [{ type: 'finished', reason: 'tool_calls', usage: NO_USAGE }],
];

/** The request after an answer with the calls `a` and `b`. */
function next(content: Blocks): object {
  const results = ['a', 'b'].map((tool_use_id) => ({ type: 'tool_result', tool_use_id, content: 'x' }));
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content },
    { role: 'user', content: results },
  ];
  return { tools, thinking, messages };
}

/** The answer to a step that thinks and calls tools, and its sealed block. */
async function thought(app: ReturnType<typeof startRoutes>, fields: object = { thinking }) {
  const { content } = (await app.post({ tools, ...fields })).body as { content: Blocks };
  return { content, block: content.find(({ type }) => type === 'redacted_thinking') };
}

t.test('CL-21 what a model needs of its thinking comes back to it through the client, sealed', async (t) => {
  const app = startRoutes({ batches: turn });
  const { content, block } = await thought(app);
  t.strictSame(
    content.map(({ type }) => type),
    ['text', 'tool_use', 'tool_use', 'redacted_thinking'],
  );
  t.notMatch(Buffer.from(block?.data ?? '', 'base64url').toString('latin1'), 'secret');
  // Claude Code puts the block before the calls.
  const moved = [content[0], block, content[1], content[2]] as Blocks;
  for (const kept of [content, moved]) {
    const reply = await app.post(next(kept));
    const sent = app.turns.at(-1);
    t.equal(sent?.hasOwnExtras, true);
    const message = sent?.messages[1] as AssistantMessage;
    t.strictSame([message.extra, message.tool_calls?.map(({ extra }) => extra)], [ofMessage, [ofCall, undefined]]);
    t.equal(reply.headers?.['x-ignored-params'], undefined);
  }
});

t.test('CL-21 a stream ends with the same block', async (t) => {
  const app = startRoutes({ batches: turn });
  const events = await eventsOf(await app.post({ tools, thinking, stream: true }));
  const blocks = events.flatMap(({ type, content_block }) => (type === 'content_block_start' ? [content_block] : [])) as Blocks;
  const data = blocks.at(-1)?.data;
  t.equal(blocks.at(-1)?.type, 'redacted_thinking');
  t.strictSame(
    events.flatMap(({ type, index }) => (type === 'content_block_stop' ? [index] : [])),
    [0, 1, 2, 3],
  );
  const calls = ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'read', input: { id } }));
  await app.post(next([...calls, { type: 'redacted_thinking', data: data ?? '' }]));
  t.match(app.turns.at(-1)?.messages[1], { role: 'assistant', extra: ofMessage });
});

t.test('CL-21 thinking that was forged, or made elsewhere, is left out and named', async (t) => {
  const app = startRoutes({ batches: turn });
  const { content, block } = await thought(app);
  const others = [
    await thought(startRoutes({ batches: turn })), // another server
    await thought(startRoutes({ batches: turn, principal: { ...OPEN, project: 'other' } })),
  ];
  const { data = '' } = block ?? {};
  const flipped = data.slice(0, 40) + (data[40] === 'A' ? 'B' : 'A') + data.slice(41);
  for (const token of [...others.map((other) => other.block?.data), flipped, data.slice(0, 30), '', 'x', 7]) {
    const reply = await app.post(next(content.map((one) => (one === block ? { ...one, data: token } : one)) as Blocks));
    t.equal(reply.headers?.['x-ignored-params'], 'messages.1.content.3.redacted_thinking');
    const message = app.turns.at(-1)?.messages[1] as AssistantMessage;
    t.strictSame([message.extra, message.tool_calls?.some(({ extra }) => extra)], [undefined, false]);
  }
  const claude = { type: 'thinking', thinking: 'Hm.', signature: 'of Anthropic' };
  const reply = await app.post(next([claude, ...content]));
  t.equal(reply.headers?.['x-ignored-params'], 'messages.1.content.0.thinking');
});

t.test('CL-21 only a step that ends in calls of the client, for a request with thinking, has the block', async (t) => {
  t.equal((await thought(startRoutes({ batches: turn }), {})).block, undefined);
  t.equal((await thought(startRoutes({ batches: turn }), { thinking: { type: 'disabled' } })).block, undefined);
  const answer = [[started], [step(1), text('Yes.'), { type: 'extra' as const, extra: ofMessage }, finished]];
  t.equal((await thought(startRoutes({ batches: answer }))).block, undefined);
  const plain = [
    [started],
    [step(1), call('a')],
    [{ type: 'finished' as const, reason: 'tool_calls' as const, usage: NO_USAGE }],
  ];
  t.equal((await thought(startRoutes({ batches: plain }))).block, undefined);
  const app = startRoutes({ batches: turn });
  const reply = await app.post({ tools, thinking }, { 'x-session-id': 's' });
  t.notMatch(JSON.stringify(reply.body), 'redacted_thinking', 'a session keeps it');
});
