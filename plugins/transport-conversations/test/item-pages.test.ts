import type { ConversationTurns, StoredTurn } from '@plugboard/kernel/contracts';
import fc from 'fast-check';
import t from 'tap';
import { itemId, parseItemId } from '../src/item-id.js';
import { findItem, type ReadTurns, readItems } from '../src/item-pages.js';
import { DIGEST, ID, VIEW } from './support/conversation.js';

/** Turns of a message and an answer each; every third has a call besides. */
function turnsOf(count: number): StoredTurn[] {
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
function reader(turns: readonly StoredTurn[], view: Partial<ConversationTurns> = {}): ReadTurns & { count: number } {
  const read = Object.assign(
    async ({ limit, order, after = order === 'asc' ? 0 : Number.POSITIVE_INFINITY }: Parameters<ReadTurns>[0]) => {
      const inOrder =
        order === 'asc' ? turns.filter(({ turn }) => turn > after) : turns.filter(({ turn }) => turn < after).toReversed();
      const page = inOrder.slice(0, limit);
      read.count += page.length;
      return { turns: page, toolVisibility: VIEW.toolVisibility, toolOf: VIEW.toolOf, ...view };
    },
    { count: 0 },
  );
  return read;
}

const idsOf = (items: readonly { readonly id: string }[] | undefined) => items?.map(({ id }) => id);

t.test('pages of any size are together all items in order, each once', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(30),
      fc.integer({ min: 1, max: 25 }),
      fc.constantFrom('asc' as const, 'desc' as const),
      async (count, size, order) => {
        const read = reader(turnsOf(count));
        const all = idsOf(await readItems(ID, read, { limit: 1000, order })) ?? [];
        const paged: string[] = [];
        for (let after: string | undefined; ; after = paged.at(-1)) {
          const page = (idsOf(await readItems(ID, read, { limit: size, order, after })) ?? []).slice(0, size);
          if (page.length === 0) break;
          paged.push(...page);
        }
        t.strictSame(paged, all);
        t.equal(new Set(all).size, all.length);
      },
    ),
    { numRuns: 60 },
  );
});

t.test('the newest items come first where that is wanted', async (t) => {
  const newest = await readItems(ID, reader(turnsOf(2)), { limit: 10, order: 'desc' });
  t.strictSame(idsOf(newest), [`msg_${DIGEST}_2_1`, `msg_${DIGEST}_2_0`, `msg_${DIGEST}_1_1`, `msg_${DIGEST}_1_0`]);
});

t.test('a page reads no more of a long conversation than it must', async (t) => {
  const read = reader(turnsOf(1000));
  t.ok(((await readItems(ID, read, { limit: 3, order: 'asc' }))?.length ?? 0) >= 3);
  t.ok(read.count <= 3);
});

t.test('paging goes on where nothing can be seen of whole turns', async (t) => {
  const silent: StoredTurn[] = Array.from({ length: 50 }, (_, index) => ({ turn: index + 1, messages: [] }));
  t.strictSame(await readItems(ID, reader(silent), { limit: 10, order: 'asc' }), []);
});

t.test('a page goes on after a call whose tool has been taken out of the configuration meanwhile', async (t) => {
  const read = reader(turnsOf(3), { toolOf: () => undefined });
  const after = `mcp_${DIGEST}_3_1_0`;
  t.strictSame(idsOf(await readItems(ID, read, { limit: 10, order: 'asc', after })), [`fco_${DIGEST}_3_2`, `msg_${DIGEST}_3_3`]);
});

t.test('an item that is not there is found in no way', async (t) => {
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
      t.equal(await readItems(ID, reader(turnsOf(5)), { limit: 10, order, after: id }), undefined, `${order} ${id}`);
    }
  }
  t.strictSame(parseItemId(others), { conversation: `conv_${'0'.repeat(40)}`, turn: 1 });
});

t.test('an item is found with its turn, and whether it ends it', async (t) => {
  const read = reader(turnsOf(5));
  t.match(await findItem(ID, read, `msg_${DIGEST}_3_3`), { item: { role: 'assistant' }, turn: 3, isLast: true });
  t.match(await findItem(ID, read, `mcp_${DIGEST}_3_1_0`), { item: { type: 'mcp_call' }, turn: 3, isLast: false });
  t.equal(read.count, 2, 'one turn is read for each');
});
