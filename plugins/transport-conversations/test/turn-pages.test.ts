import { Page } from '@plugboard/openai-protocol';
import t from 'tap';
import type { ReadTurns } from '../src/items/item-pages.js';
import type { ConversationTurn } from '../src/items/turn-to-items.js';
import { turnEntry } from '../src/turns/turn-entry.js';
import { readTurns } from '../src/turns/turn-pages.js';
import { DIGEST, ID, VIEW } from './support/conversation.js';

const TOKENS = { promptTokens: 5, completionTokens: 7, cachedTokens: 1, cacheWriteTokens: 0, reasoningTokens: 2 };
const USAGE = {
  input_tokens: 5,
  input_tokens_details: { cached_tokens: 1, cache_write_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 12,
};
const TOOL = { entry: 'files', name: 'read' };

/** A turn with a call that failed, one that waits, and one of the caller's. */
const TURN: ConversationTurn = {
  turn: 3,
  messages: [
    { role: 'user', content: 'Read' },
    {
      role: 'assistant',
      content: null,
      tool_calls: ['a', 'b', 'c'].map((id) => ({ id, type: 'function', function: { name: 'files__read', arguments: '{}' } })),
    },
    { role: 'tool', tool_call_id: 'a', content: 'The tool failed: no such file' },
  ],
  record: {
    startedAt: 1_795_387_714_900,
    queued: 12,
    duration: 900,
    usage: TOKENS,
    reason: 'tool_calls',
    steps: [
      {
        connection: 'fast',
        start: 14,
        firstToken: 430,
        duration: 800,
        usage: TOKENS,
        reasoning: 'secret thoughts',
        reasoned: 300,
      },
    ],
    calls: [
      { id: 'a', name: 'files__read', tool: TOOL, step: 1, start: 814, duration: 30, state: 'failed' },
      { id: 'b', name: 'files__read', tool: TOOL, step: 1, start: 814, state: 'waiting', approval: 'mcpr_b' },
      { id: 'c', name: 'weather', step: 1, start: 814, state: 'client' },
      { id: 'z', name: 'files__read', tool: TOOL, step: 0, start: 1, state: 'cut' },
    ],
    decisions: [{ approval: 'mcpr_z', call: 'z', approve: true, by: 'person' }],
  },
};

t.test('a turn shows when it began, what it did and how long it took', async (t) => {
  t.strictSame(turnEntry(TURN, VIEW), {
    id: `turn_${DIGEST}_3`,
    object: 'conversation.turn',
    turn: 3,
    created_at: 1_795_387_714,
    created_at_ms: 1_795_387_714_900,
    status: 'completed',
    incomplete_details: null,
    queued_ms: 12,
    duration_ms: 900,
    usage: USAGE,
    steps: [
      {
        connection: 'fast',
        start_ms: 14,
        first_token_ms: 430,
        duration_ms: 800,
        usage: USAGE,
        reasoning: 'secret thoughts',
        reasoning_ms: 300,
      },
    ],
    calls: [
      {
        item_id: `mcp_${DIGEST}_3_1_0`,
        type: 'mcp_call',
        server_label: 'files',
        name: 'read',
        step: 1,
        start_ms: 814,
        duration_ms: 30,
        status: 'failed',
        error: 'The tool failed: no such file',
        approval_request_id: null,
      },
      {
        item_id: 'mcpr_b',
        type: 'mcp_call',
        server_label: 'files',
        name: 'read',
        step: 1,
        start_ms: 814,
        duration_ms: null,
        status: 'waiting',
        error: null,
        approval_request_id: 'mcpr_b',
      },
      {
        item_id: `fc_${DIGEST}_3_1_2`,
        type: 'function_call',
        server_label: null,
        name: 'weather',
        step: 1,
        start_ms: 814,
        duration_ms: null,
        status: 'client',
        error: null,
        approval_request_id: null,
      },
      {
        item_id: null,
        type: 'mcp_call',
        server_label: 'files',
        name: 'read',
        step: 0,
        start_ms: 1,
        duration_ms: null,
        status: 'incomplete',
        error: null,
        approval_request_id: null,
      },
    ],
    decisions: [{ approval_request_id: 'mcpr_z', approve: true, reason: null, by: 'person' }],
  });
});

t.test('AG-5 a call that asked an agent has what happened in its turn, down to the calls of that', async (t) => {
  const inner = { id: 'y', name: 'files__read', tool: TOOL, step: 1, start: 30, duration: 5, state: 'failed' } as const;
  const steps = [{ connection: 'mid', start: 20, duration: 9, usage: TOKENS, reasoning: 'not kept by the runtime' }];
  const asked = { id: 'a', name: 'ask', tool: { entry: 'ask', name: 'ask' }, step: 1, start: 14, duration: 30 } as const;
  const nested = { agent: 'researcher', usage: TOKENS, steps, calls: [inner, { ...asked, id: 'x', state: 'cut' as const }] };
  const record = {
    ...TURN.record,
    queued: 0,
    duration: 50,
    steps: [],
    calls: [{ ...asked, state: 'completed' as const, nested }],
  };
  const { calls } = turnEntry({ ...TURN, record }, VIEW);
  t.match(calls, [
    {
      item_id: `mcp_${DIGEST}_3_1_0`,
      nested: {
        agent: 'researcher',
        usage: USAGE,
        steps: [{ connection: 'mid', start_ms: 20, duration_ms: 9, usage: USAGE }],
        calls: [
          { item_id: 'y', server_label: 'files', status: 'failed', duration_ms: 5, error: 'The tool call failed.' },
          { item_id: 'x', status: 'incomplete' },
        ],
      },
    },
  ]);
  t.notOk('nested' in (calls[0]?.nested?.calls[0] ?? {}));
  t.notOk('nested' in (turnEntry({ ...TURN, record }, { ...VIEW, toolVisibility: 'names' }).calls[0] ?? {}));
});

t.test('R-044 an agent that hides its tools hides them here', async (t) => {
  const names = turnEntry(TURN, { ...VIEW, toolVisibility: 'names' });
  t.notMatch(JSON.stringify(names), /secret|no such file/);
  t.match(names.calls[0], { name: 'read', status: 'failed', error: 'The tool call failed.' });
  t.match(turnEntry(TURN, { ...VIEW, toolVisibility: 'none' }), { duration_ms: 900, usage: USAGE, steps: [], calls: [] });
});

t.test('a turn that ended early says why', async (t) => {
  const { record } = TURN;
  const ended = (more: object) => {
    const { status, incomplete_details } = turnEntry({ ...TURN, record: record && { ...record, ...more } }, VIEW);
    return { status, reason: incomplete_details?.reason };
  };
  t.strictSame(ended({}), { status: 'completed', reason: undefined });
  t.strictSame(ended({ reason: 'length' }), { status: 'incomplete', reason: 'max_output_tokens' });
  t.strictSame(ended({ reason: 'length', limit: 'max_steps' }), { status: 'incomplete', reason: 'max_steps' });
  t.strictSame(ended({ reason: 'content_filter' }), { status: 'incomplete', reason: 'content_filter' });
  t.strictSame(ended({ reason: 'interrupted', startedAt: undefined }), { status: 'incomplete', reason: 'shutdown' });
});

t.test('of a turn without a record only its number is known', async (t) => {
  t.strictSame(turnEntry({ turn: 1, messages: [] }, VIEW), {
    object: 'conversation.turn',
    created_at: null,
    created_at_ms: null,
    status: 'completed',
    incomplete_details: null,
    queued_ms: null,
    duration_ms: null,
    usage: null,
    steps: [],
    calls: [],
    decisions: [],
    id: `turn_${DIGEST}_1`,
    turn: 1,
  });
});

t.test('pages of any size are together all turns, each once', async (t) => {
  const turns = Array.from({ length: 45 }, (_, index): ConversationTurn => ({ turn: index + 1, messages: [] }));
  const read: ReadTurns = async ({ limit, order, after = order === 'asc' ? 0 : Number.POSITIVE_INFINITY }) => {
    const inOrder =
      order === 'asc' ? turns.filter(({ turn }) => turn > after) : turns.toReversed().filter((one) => one.turn < after);
    return { turns: inOrder.slice(0, limit), toolVisibility: 'full', toolOf: () => undefined };
  };
  for (const order of ['asc', 'desc'] as const) {
    for (const [limit, maxBytes] of [
      [1, 1e9],
      [7, 1e9],
      [20, 1e9],
      [45, 1e9],
      [100, 1e9],
      [100, 1],
      [100, 600],
    ] as const) {
      const found: number[] = [];
      let after: string | undefined;
      do {
        const page = new Page({ limit, maxBytes });
        t.equal(await readTurns(ID, read, { limit, order, after }, page), true);
        const { data, has_more, last_id } = JSON.parse(page.toText());
        found.push(...data.map(({ turn }: { turn: number }) => turn));
        after = has_more ? last_id : undefined;
      } while (after !== undefined);
      const all = turns.map(({ turn }) => turn);
      t.strictSame(found, order === 'asc' ? all : all.toReversed(), `${order} ${limit} ${maxBytes}`);
    }
  }
  for (const after of ['', 'turn_', `turn_${'0'.repeat(40)}_1`, `turn_${DIGEST}_0`, `msg_${DIGEST}_1_0`])
    t.equal(await readTurns(ID, read, { limit: 1, order: 'asc', after }, new Page({ limit: 1, maxBytes: 1 })), false, after);
});

t.test('TC-2 the status of a call says that its effect is unknown', async (t) => {
  const { record, messages } = TURN;
  if (!record) throw new Error('the turn has a record');
  const calls = record.calls.map((call) => (call.id === 'a' ? { ...call, state: 'unknown' as const } : call));
  const [call] = turnEntry({ turn: 3, messages, record: { ...record, calls } }, VIEW).calls;
  t.match(call, { status: 'unknown', error: 'The tool failed: no such file' });
});
