import type { ConversationTurns } from '@plugboard/kernel/contracts';
import { Page } from '@plugboard/openai-protocol';
import fc from 'fast-check';
import t from 'tap';
import { itemId, parseItemId } from '../src/items/item-id.js';
import { findItem, type ItemRange, type ReadTurns, readItems } from '../src/items/item-pages.js';
import type { ConversationTurn } from '../src/items/turn-to-items.js';
import { DIGEST, ID, VIEW } from './support/conversation.js';

/** Turns of a message and an answer each; every third has a call besides. */
function turnsOf(count: number): ConversationTurn[] {
  return Array.from({ length: count }, (_, index) => ({
    turn: index + 1,
    messages: [
      { role: 'user', content: `${index}` },
      ...(index % 3 === 2
        ? ([
            {
              role: 'assistant',
              content: null,
              tool_calls: [{ id: 'a', type: 'function', function: { name: 'files__read', arguments: '{}' } }],
            },
            { role: 'tool', tool_call_id: 'a', content: '' },
          ] as const)
        : []),
      { role: 'assistant', content: 'ok' },
    ],
  }));
}

/** Reads them as a store does, and counts what was read. */
function reader(turns: readonly ConversationTurn[], view: Partial<ConversationTurns> = {}): ReadTurns & { count: number } {
  const read = Object.assign(
    async ({ limit, order, after = order === 'asc' ? 0 : Number.POSITIVE_INFINITY, approval }: Parameters<ReadTurns>[0]) => {
      const known =
        approval === undefined ? turns : turns.filter(({ record }) => record?.calls.some((call) => call.approval === approval));
      const inOrder =
        order === 'asc' ? known.filter(({ turn }) => turn > after) : known.filter(({ turn }) => turn < after).toReversed();
      const page = inOrder.slice(0, limit);
      read.count += page.length;
      return { turns: page, toolVisibility: VIEW.toolVisibility, toolOf: VIEW.toolOf, ...view };
    },
    { count: 0 },
  );
  return read;
}

const UNLIMITED = Number.POSITIVE_INFINITY;

interface PageOfItems {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
}

/** Reads one page; undefined if there is no item `after`. */
async function pageOf(read: ReadTurns, range: ItemRange, maxBytes = UNLIMITED): Promise<PageOfItems | undefined> {
  const page = new Page({ limit: range.limit, maxBytes });
  return (await readItems(ID, read, range, page)) ? JSON.parse(page.toText()) : undefined;
}

async function idsOf(read: ReadTurns, range: ItemRange, maxBytes = UNLIMITED): Promise<readonly string[] | undefined> {
  return (await pageOf(read, range, maxBytes))?.data.map(({ id }) => id);
}

t.test('pages of any size and number of bytes are together all items in order, each once', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(30),
      fc.integer({ min: 1, max: 25 }),
      fc.constantFrom(UNLIMITED, 1, 200, 1_000),
      fc.constantFrom('asc' as const, 'desc' as const),
      async (count, limit, maxBytes, order) => {
        const read = reader(turnsOf(count));
        const all = (await idsOf(read, { limit: 1000, order })) ?? [];
        const paged: string[] = [];
        for (let hasMore = count > 0; hasMore; ) {
          const page = await pageOf(read, { limit, order, after: paged.at(-1) }, maxBytes);
          if (!page || page.data.length === 0) throw new Error('a page with has_more was followed by an empty one');
          paged.push(...page.data.map(({ id }) => id));
          hasMore = page.has_more;
        }
        t.strictSame(paged, all);
        t.equal(new Set(all).size, all.length);
      },
    ),
    { numRuns: 60 },
  );
});

t.test('order: desc returns the newest items first', async (t) => {
  const newest = await idsOf(reader(turnsOf(2)), { limit: 10, order: 'desc' });
  t.strictSame(newest, [`msg_${DIGEST}_2_1`, `msg_${DIGEST}_2_0`, `msg_${DIGEST}_1_1`, `msg_${DIGEST}_1_0`]);
});

t.test('a page reads only the turns it needs of a long conversation', async (t) => {
  const read = reader(turnsOf(1000));
  t.equal((await idsOf(read, { limit: 3, order: 'asc' }))?.length, 3);
  t.ok(read.count <= 3);
});

t.test('S-38 a page ends before the item that exceeds its bytes, and has at least one item', async (t) => {
  const large = (turn: number): ConversationTurn => ({ turn, messages: [{ role: 'user', content: 'x'.repeat(1_000) }] });
  const read = reader([1, 2, 3, 4, 5].map(large));
  const [first, second] = [`msg_${DIGEST}_1_0`, `msg_${DIGEST}_2_0`];
  t.match(await pageOf(read, { limit: 10, order: 'asc' }, 1), { data: [{ id: first }], has_more: true });
  t.match(await pageOf(read, { limit: 10, order: 'asc' }, 2_500), { data: [{ id: first }, { id: second }], has_more: true });
  t.match(await pageOf(read, { limit: 10, order: 'asc' }, 9_999), { has_more: false });
});

t.test('paging continues past turns without visible items', async (t) => {
  const silent: ConversationTurn[] = Array.from({ length: 50 }, (_, index) => ({ turn: index + 1, messages: [] }));
  t.strictSame(await pageOf(reader(silent), { limit: 10, order: 'asc' }), {
    object: 'list',
    data: [],
    first_id: null,
    last_id: null,
    has_more: false,
  });
});

t.test('a page continues after a call whose tool was removed from the configuration', async (t) => {
  const read = reader(turnsOf(3), { toolOf: () => undefined });
  const after = `mcp_${DIGEST}_3_1_0`;
  t.strictSame(await idsOf(read, { limit: 10, order: 'asc', after }), [`fco_${DIGEST}_3_2`, `msg_${DIGEST}_3_3`]);
});

t.test('a page continues after a request for approval, whose id says nothing about its place', async (t) => {
  const turns = turnsOf(60);
  const calls = [{ id: 'a', name: 'files__read', step: 1, start: 0, tool: { entry: 'files', name: 'read' } }] as const;
  const record = { queued: 0, duration: 1, reason: 'stop', steps: [] } as const;
  turns[2] = {
    ...(turns[2] as ConversationTurn),
    record: { ...record, calls: [{ ...calls[0], state: 'waiting', approval: 'mcpr_a' }] },
  };
  const read = reader(turns);
  const all = (await idsOf(read, { limit: 1000, order: 'asc' })) ?? [];
  const place = all.indexOf('mcpr_a');
  t.strictSame(await idsOf(read, { limit: 2, order: 'asc', after: 'mcpr_a' }), all.slice(place + 1, place + 3));
  read.count = 0;
  t.match(await findItem(ID, read, 'mcpr_a'), { item: { id: 'mcpr_a', type: 'mcp_approval_request' }, turn: 3 });
  t.equal(await findItem(ID, read, 'mcpr_b'), undefined);
  t.equal(read.count, 2, 'S-71 a look-up does not walk the conversation');
});

t.test('an unknown item is not found', async (t) => {
  const others = itemId('msg', { conversation: `conv_${'0'.repeat(40)}`, turn: 1, message: 0 });
  const ids = [
    others,
    '',
    'msg_',
    `msg_${DIGEST}`,
    `msg_${DIGEST}_0_0`,
    `msg_${DIGEST}_1_7`,
    `msg_${DIGEST}_1_00`,
    `msg_${DIGEST}_01_0`,
    `msg_${DIGEST}_1_0_0`,
    `msg_${DIGEST}_99_0`,
    `msg_${DIGEST}_999999999_0`,
    `msg_${DIGEST}_1e3_0`,
    `msg_${DIGEST}_-1_0`,
    `msg_${DIGEST.toUpperCase()}_1_0`,
    `fco_${DIGEST}_1_0`,
    `fc_${DIGEST}_3_1`,
    `ctc_${DIGEST}_3_1_0`,
    `msg_${DIGEST}_1_0\n`,
    `xmsg_${DIGEST}_1_0`,
    `${ID}`,
    '../../etc/passwd',
  ];
  for (const id of ids) {
    t.equal(await findItem(ID, reader(turnsOf(5)), id), undefined, id);
    for (const order of ['asc', 'desc'] as const) {
      t.equal(await pageOf(reader(turnsOf(5)), { limit: 10, order, after: id }), undefined, `${order} ${id}`);
    }
  }
  t.strictSame(parseItemId(others), { conversation: `conv_${'0'.repeat(40)}`, turn: 1 });
});

t.test('an item is found with its turn and whether it is the last one', async (t) => {
  const read = reader(turnsOf(5));
  t.match(await findItem(ID, read, `msg_${DIGEST}_3_3`), { item: { role: 'assistant' }, turn: 3, isLast: true });
  t.match(await findItem(ID, read, `mcp_${DIGEST}_3_1_0`), { item: { type: 'mcp_call' }, turn: 3, isLast: false });
  t.equal(read.count, 2, 'one turn is read for each');
});
