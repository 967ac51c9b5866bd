import t from 'tap';
import { startRoutes } from './support/route.js';

const listed = ['claude-coder', 'b', 'c/d', 'fast'].map((name, index) => ({
  name,
  kind: index < 3 ? ('agent' as const) : ('model' as const),
  description: index === 0 ? 'Coder' : undefined,
}));
const { ask } = startRoutes({ listed });

async function page(query: string) {
  const { body } = await ask('GET', '/v1/models', { query: new URLSearchParams(query) });
  const { data, ...rest } = body as { readonly data: readonly { readonly id: string }[] };
  return { ids: data.map(({ id }) => id), ...rest };
}

t.test('CL-26 the list has the protocol’s shape and pages', async (t) => {
  const { body } = await ask('GET', '/v1/models');
  t.match(body, {
    data: [
      { type: 'model', id: 'claude-coder', display_name: 'Coder', created_at: '1970-01-01T00:00:00Z' },
      { id: 'b', display_name: 'b' },
    ],
  });
  t.strictSame(await page(''), {
    ids: ['claude-coder', 'b', 'c/d', 'fast'],
    has_more: false,
    first_id: 'claude-coder',
    last_id: 'fast',
  });
  t.strictSame(await page('limit=2'), { ids: ['claude-coder', 'b'], has_more: true, first_id: 'claude-coder', last_id: 'b' });
  t.match(await page('limit=2&after_id=b'), { ids: ['c/d', 'fast'], has_more: false });
  t.match(await page('limit=2&before_id=fast'), { ids: ['b', 'c/d'], has_more: true });
  t.match(await page('after_id=fast'), { ids: [], has_more: false, first_id: null, last_id: null });
  for (const query of ['limit=0', 'limit=x', 'limit=1001', 'after_id=none']) {
    t.match(await page(query).catch((error: unknown) => error), { status: 400, type: 'invalid_request_error' }, query);
  }
});

t.test('CL-26 one model', async (t) => {
  const { body } = await ask('GET', '/v1/models/*id', { params: { id: 'c/d' } });
  t.match(body, { type: 'model', id: 'c/d' });
  const refused: unknown = await ask('GET', '/v1/models/*id', { params: { id: 'x' } }).catch((error: unknown) => error);
  t.match(refused, { status: 404, type: 'not_found_error' });
});

t.test('CL-26 tokens are estimated without a turn', async (t) => {
  const { ask, turns } = startRoutes();
  const count = async (fields: object) => {
    const body = { model: 'assistant', messages: [{ role: 'user', content: 'x'.repeat(400) }], ...fields };
    return ((await ask('POST', '/v1/messages/count_tokens', { body })).body as { input_tokens: number }).input_tokens;
  };
  const plain = await count({});
  t.ok(plain > 100 && plain < 130, `${plain}`);
  const tools = [{ name: 'read', description: 'y'.repeat(400), input_schema: { type: 'object' } }];
  t.ok((await count({ tools, system: 'z'.repeat(400) })) > plain + 200);
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(1_000_000) } };
  const shown = await count({ messages: [{ role: 'user', content: [image] }] });
  t.ok(shown > 1_000 && shown < 3_000, `the bytes of an image are not text: ${shown}`);
  t.equal(turns.length, 0);
});
