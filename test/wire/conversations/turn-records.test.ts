/** What happened in the turns of a conversation, as it can be read afterwards. */
import t from 'tap';
import {
  bodyOf,
  type ConversationBody,
  type ItemBody,
  type PageBody,
  SEED,
  SEVERAL_AGENTS,
  startWithConversations,
} from '../../support/conversations.js';
import { errorOf, saying } from '../../support/test-server.js';

const { server, caller } = await startWithConversations(t, SEVERAL_AGENTS);

interface TurnBody {
  readonly id: string;
  readonly turn: number;
  readonly created_at: number | null;
  readonly duration_ms: number;
  readonly steps: readonly { readonly start_ms: number; readonly duration_ms: number }[];
  readonly calls: readonly { readonly item_id: string; readonly start_ms: number }[];
}

const inTokyo = { name: 'clock', arguments: { timeZone: 'Asia/Tokyo' } };
const nowhere = { name: 'clock', arguments: { timeZone: 'Nowhere' } };

async function turnsOf(id: string, query = ''): Promise<PageBody<TurnBody>> {
  return bodyOf<PageBody<TurnBody>>(await caller.get(`/${id}/turns${query}`));
}

t.test('a turn shows its steps and calls, and a call that failed is failed in both lists', async (t) => {
  const { id } = await caller.create({ id: 'recorded' });
  server.models.enqueue(
    { reasoning: 'I need the time.', toolCalls: [inTokyo, nowhere], usage: { promptTokens: 20, completionTokens: 4 } },
    { text: 'It is late in Tokyo.', usage: { promptTokens: 30, completionTokens: 6, cachedTokens: 10 } },
  );
  const before = Math.floor(Date.now() / 1000);
  await server.chat(saying('What time is it?', { session_id: 'recorded' }));
  const page = await turnsOf(id);
  const [turn, ...others] = page.data;
  t.strictSame(others, []);
  t.match(turn, {
    id: `turn_${id.slice('conv_'.length)}_1`,
    object: 'conversation.turn',
    turn: 1,
    status: 'completed',
    incomplete_details: null,
    queued_ms: Number,
    usage: { input_tokens: 50, output_tokens: 10, total_tokens: 60, input_tokens_details: { cached_tokens: 10 } },
    steps: [
      { connection: 'fast', first_token_ms: Number, reasoning: 'I need the time.', usage: { total_tokens: 24 } },
      { connection: 'fast', first_token_ms: Number, reasoning: null, usage: { total_tokens: 36 } },
    ],
    calls: [
      { type: 'mcp_call', server_label: 'clock', step: 1, status: 'completed', duration_ms: Number, error: null },
      { type: 'mcp_call', server_label: 'clock', step: 1, status: 'failed', duration_ms: Number, error: /Nowhere/ },
    ],
    decisions: [],
  });
  t.ok((turn?.created_at ?? 0) >= before - 1 && (turn?.created_at ?? 0) <= Date.now() / 1000);
  const ends = [...(turn?.steps ?? [])].map(({ start_ms, duration_ms }) => start_ms + duration_ms);
  t.ok((ends[0] ?? 0) <= (turn?.steps[1]?.start_ms ?? -1), 'the second step begins after the first');
  t.ok((ends[1] ?? 0) <= (turn?.duration_ms ?? -1));

  const items = await caller.items(id);
  t.strictSame(
    items.map(({ type }) => type),
    ['message', 'reasoning', 'mcp_call', 'mcp_call', 'message'],
  );
  t.match(items[1], { summary: [{ type: 'summary_text', text: 'I need the time.' }] });
  t.match(items[3], {
    status: 'failed',
    output: null,
    error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: /Nowhere/ }] },
  });
  t.strictSame(
    turn?.calls.map(({ item_id }) => item_id),
    items.slice(2, 4).map((item) => item.id),
  );
  for (const item of items) t.strictSame(bodyOf<ItemBody>(await caller.get(`/${id}/items/${item.id}`)), item);
});

t.test('an agent that hides its tools and reasoning hides them in its turns', async (t) => {
  for (const agent of ['discreet', 'silent']) {
    const { id } = await caller.create({ agent, id: 'hidden' });
    server.models.enqueue({ reasoning: 'secret thoughts', toolCalls: [nowhere] }, { text: 'No.' });
    await server.chat({ model: agent, messages: [{ role: 'user', content: 'Time?' }], session_id: 'hidden' });
    for (const list of ['turns', 'items']) t.notMatch((await caller.get(`/${id}/${list}`)).text, /secret|Nowhere|reasoning":"/);
    const [turn] = (await turnsOf(id)).data;
    t.match(turn, { status: 'completed', usage: { total_tokens: Number } });
    if (agent === 'silent') t.match(turn, { steps: [], calls: [] });
    else t.match(turn?.calls, [{ status: 'failed', error: 'The tool call failed.' }]);
  }
});

t.test('a turn that a limit ended says so, and items that were added have no record', async (t) => {
  const { id } = await caller.create({ id: 'limited', items: SEED });
  server.models.enqueue({ text: 'It is a long', finishReason: 'length' });
  await server.chat(saying('Tell me', { session_id: 'limited' }));
  const { data, has_more } = await turnsOf(id, '?order=asc');
  t.equal(has_more, false);
  t.match(data, [
    { turn: 1, created_at: null, duration_ms: null, usage: null, steps: [] },
    { turn: 2, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
  ]);
  t.match((await turnsOf(id, '?limit=1')).data, [{ turn: 2 }]);
  t.match((await turnsOf(id, `?limit=1&after=${data[1]?.id}`)).data, [{ turn: 1 }]);
  t.match(errorOf(await caller.get(`/${id}/turns?after=turn_1`)), { param: 'after' });
  t.equal((await caller.get(`/conv_${'0'.repeat(40)}/turns`)).status, 404);
  const copy = bodyOf<ConversationBody>(await caller.post(`/${id}/fork`, { id: 'a copy' }));
  t.match((await turnsOf(copy.id)).data, [{ turn: 2, incomplete_details: { reason: 'max_output_tokens' } }, { turn: 1 }]);
});
