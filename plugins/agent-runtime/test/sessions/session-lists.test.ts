import type { Message, Principal, SessionStore } from '@plugboard/kernel';
import { conversationId, OPEN } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { accountOf, gatedModel, user } from '../harness.js';
import { conversing, S } from './conversing.js';

const ASSISTANT: Message = { role: 'assistant', content: 'Hi.' };

t.test('C-193 a list is filtered by agent, status and a search, over pages of the store', async (t) => {
  const { model, call } = gatedModel();
  const agents = { assistant: { model: 'fast' }, billing: { model: 'fast' } };
  const { conversations, send, store } = await conversing({ models: { fast: model }, agents });
  const say = (text: string) => [{ role: 'user', content: text } as const];
  for (let n = 0; n < 600; n++) {
    const id = { ...S, agent: n % 2 ? 'billing' : 'assistant', key: `key ${n}` };
    const metadata: Record<string, string> = n === 1 ? { title: 'My Trip', other: 'Hidden' } : {};
    await store.create(id, { metadata, messages: n === 0 ? say('Über RAIN') : [] });
  }
  const keys = async (page: object, principal = OPEN) =>
    (await conversations.list({ limit: 100, order: 'asc', ...page }, principal, accountOf())).map(({ id }) => id.key);
  t.strictSame(await keys({ search: 'über rain' }), ['key 0'], 'the title');
  t.strictSame(await keys({ search: 'my trip' }), ['key 1'], 'the metadata title');
  t.strictSame(await keys({ search: 'KEY 59', order: 'desc', limit: 3 }), ['key 599', 'key 598', 'key 597'], 'the key');
  const after = await conversations.get(conversationId({ ...S, agent: 'billing', key: 'key 591' }), OPEN);
  t.strictSame(await keys({ search: 'key 59', order: 'desc', after }), ['key 590', 'key 59'], 'the next page');
  t.strictSame(await keys({ search: 'key 59', agent: 'assistant', limit: 2 }), ['key 590', 'key 592']);
  for (const search of ['hidden', '%', "' OR '1'='1", 'key_5', '.*']) t.strictSame(await keys({ search }), [], search);
  t.strictSame(await keys({ agent: 'billing', limit: 2 }), ['key 1', 'key 3']);
  t.strictSame(await keys({ metadata: { name: 'other', value: 'Hidden' } }), ['key 1'], 'an entry of the metadata');
  for (const metadata of [
    { name: 'other', value: 'hidden' },
    { name: 'constructor', value: '' },
  ])
    t.strictSame(await keys({ metadata }), [], metadata.name);
  const own = { project: 'default', scopes: [], agents: ['billing'] };
  t.strictSame(await keys({ agent: 'assistant' }, own), [], 'an agent out of scope');
  t.strictSame(await keys({ search: 'key 59', limit: 2 }, own), ['key 59', 'key 591']);

  const turn = send('Hello', { key: 'key 2' });
  const { answer } = await call(1);
  t.strictSame(await keys({ status: 'running' }), ['key 2']);
  t.strictSame(await keys({ status: 'idle', limit: 2, agent: 'assistant' }), ['key 0', 'key 4']);
  answer('Hi');
  await turn;
  t.strictSame(await keys({ status: 'running' }), []);
});

t.test('C-192 a list has the sessions whose first turn runs, where they belong', async (t) => {
  const { model, call } = gatedModel();
  const agents = { assistant: { model: 'fast' }, billing: { model: 'fast' } };
  const clock = new ManualClock();
  const { conversations, send, store } = await conversing({ models: { fast: model }, agents, clock });
  const listed = async (page: object, principal: Principal = OPEN) =>
    await conversations.list({ limit: 10, order: 'desc', ...page }, principal, accountOf());
  const keys = async (page: object, principal?: Principal) => (await listed(page, principal)).map(({ id }) => id.key);
  const make = async (key: string) => {
    clock.advance(1_000);
    await store.create({ ...S, key }, { metadata: {}, messages: [] });
  };
  await make('old');
  clock.advance(1_000);
  const turn = send('Hello', { key: 'fresh', user: 'ann' });
  const { answer } = await call(1);
  await make('new');
  t.strictSame(await keys({}), ['new', 'fresh', 'old']);
  t.strictSame(await keys({ order: 'asc' }), ['old', 'fresh', 'new']);
  t.strictSame(await keys({ status: 'running' }), ['fresh']);
  t.strictSame(await keys({ user: 'ann' }), ['fresh']);
  t.strictSame(await keys({ search: 'hello' }), ['fresh'], 'by its title');
  for (const hidden of [{ user: 'ben' }, { agent: 'billing' }, { search: 'Bye' }]) t.strictSame(await keys(hidden), []);
  t.strictSame(await keys({}, { ...OPEN, agents: ['billing'] }), [], 'an agent out of scope');
  t.strictSame(await keys({}, { ...OPEN, project: 'acme' }), [], 'another project');
  const [first, second] = await listed({ limit: 2 });
  t.match(second, { turns: 0, title: 'Hello', status: 'running', user: 'ann' });
  t.strictSame(await keys({ after: first }), ['fresh', 'old']);
  t.strictSame(await keys({ after: second }), ['old']);
  clock.advance(1_000);
  answer('Hi');
  await turn;
  t.strictSame(await keys({}), ['fresh', 'new', 'old']);
  t.strictSame(await keys({ after: second }), ['old'], 'its place of that time');
});

t.test('a list shows a session once that has a turn while the list is read', async (t) => {
  for (const order of ['asc', 'desc'] as const) {
    const clock = new ManualClock();
    const { conversations, store } = await conversing({ clock });
    for (let n = 0; n < 450; n++) {
      await store.create({ ...S, key: `key ${n}` }, { metadata: {}, messages: [{ role: 'user', content: 'Hi' }] });
      clock.advance(1);
    }
    const list = store.list.bind(store);
    let pages = 0;
    store.list = async (project, page) => {
      const found = await list(project, page);
      const id = { ...S, key: `key ${++pages}` };
      await store.commit(id, { expected: await store.version(id), messages: [user('x'), ASSISTANT] });
      clock.advance(1);
      return found;
    };
    const found = await conversations.list({ limit: 1_000, order, search: 'key' }, OPEN, accountOf());
    t.equal(new Set(found.map(({ conversation }) => conversation)).size, found.length, order);
    t.ok(found.length >= 448);
  }
});

t.test('the sessions whose first turn runs are looked up once, however many pages are read', async (t) => {
  const { model } = gatedModel();
  const { conversations, send, store } = await conversing({ models: { fast: model } });
  const asked: string[] = [];
  const { info } = store;
  (store as { -readonly [K in keyof SessionStore]: SessionStore[K] }).info = (id) => {
    asked.push(id.key);
    return info.call(store, id);
  };
  const keys = ['a', 'b', 'c', 'd', 'e'];
  const caller = new AbortController();
  const turns = keys.map((key) => send('Hello', { key }, caller.signal));
  for (let page = 0; page < 4; page++) {
    const listed = await conversations.list({ limit: 10, order: 'asc' }, OPEN, accountOf());
    t.strictSame(listed.map(({ id }) => id.key).sort(), keys);
  }
  t.ok(asked.length <= 2 * keys.length, 'once by the list, and once by the turn that loads it');
  caller.abort();
  await Promise.all(turns);
});
