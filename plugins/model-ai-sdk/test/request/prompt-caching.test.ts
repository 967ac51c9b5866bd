import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { asMessages, CLOCK, open, readAll } from '../connection.js';
import { type Body, listOf, type NativeRequest } from '../servers/native-server.js';

const SYSTEM: Message = { role: 'system', content: 'Be brief.' };
const TIME: Message = { role: 'user', content: 'Time?' };

/** The paths of all breakpoints in a request. */
function breakpoints(value: unknown, key: string, path = ''): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === key ? [path.slice(1)] : breakpoints(inner, key, `${path}.${name}`),
  );
}

/** A turn of some steps, each with a call, and what was sent. */
async function turn(
  t: Parameters<typeof open>[0],
  name: 'anthropic' | 'bedrock',
  steps: number,
  options = {},
): Promise<readonly NativeRequest[]> {
  const { server, ...connection } = await open(t, name, options);
  const messages: Message[] = [SYSTEM, TIME];
  for (let step = 0; step < steps; step++) {
    server.enqueue({ thinking: ['Hm.'], calls: [{ id: `call_${step}`, name: 'clock', input: { zone: 'UTC' } }] });
    messages.push(...asMessages(await readAll(connection, { messages, tools: [CLOCK] }), [`noon ${step}`]));
  }
  t.same(server.refusals, []);
  return server.requests;
}

t.test('breakpoints stand behind the prompt and move on with every step (AI-10)', async (t) => {
  const requests = await turn(t, 'anthropic', 4);
  t.same(
    requests.map(({ body }) => breakpoints(body, 'cache_control')),
    [
      ['messages.0.content.0', 'system.0'],
      ['messages.0.content.0', 'messages.2.content.0', 'system.0'],
      ['messages.2.content.0', 'messages.4.content.0', 'system.0'],
      ['messages.4.content.0', 'messages.6.content.0', 'system.0'],
    ].map((paths) => paths.toSorted((a, b) => (a === 'system.0' ? -1 : b === 'system.0' ? 1 : 0))),
  );
  const off = await turn(t, 'anthropic', 1, { promptCaching: false });
  t.same(breakpoints(off[0]?.body, 'cache_control'), []);
});

t.test('Bedrock gets cache points, and none behind a thought (AI-11)', async (t) => {
  const requests = await turn(t, 'bedrock', 3);
  t.same(
    requests.map(({ body }) => [
      listOf(body.system).some(({ cachePoint }) => cachePoint),
      breakpoints(body.messages, 'cachePoint').length,
    ]),
    [
      [true, 1],
      [true, 2],
      [true, 2],
    ],
  );
});

/** What a server caches: the JSON of a request in the order of its prefix, without breakpoints. */
function prefixOf({ tools, system, messages }: Body): string {
  const json = JSON.stringify([tools, system, messages], (key, value) => (key === 'cache_control' ? undefined : value));
  return json.slice(0, -2);
}

t.test('each request begins with the bytes of the one before (AI-10)', async (t) => {
  const [first, ...rest] = await turn(t, 'anthropic', 4);
  let before = prefixOf(first?.body ?? {});
  for (const { body } of rest) {
    const prefix = prefixOf(body);
    t.ok(prefix.startsWith(before));
    before = prefix;
  }
});

/**
 * The blocks of a request in the order of the prefix, each with whether a breakpoint follows it.
 */
function blocksOf({ tools, system, messages }: Body): readonly { readonly json: string; readonly isMarked: boolean }[] {
  const content = listOf(messages).flatMap((message) => listOf(message.content).map((block) => [message.role, block] as const));
  const all = [
    ...listOf(tools).map((tool) => ['tool', tool] as const),
    ...listOf(system).map((text) => ['system', text] as const),
    ...content,
  ];
  return all.map(([role, { cache_control: mark, ...block }]) => ({
    json: JSON.stringify([role, block]),
    isMarked: mark !== undefined,
  }));
}

/** Blocks before a breakpoint that the provider compares with what it has cached. */
const LOOKBACK = 20;

/** The share of the bytes that a cache as Anthropic describes it serves. */
function cachedShare(requests: readonly NativeRequest[]): number {
  const cached = new Set<string>();
  let read = 0;
  let sent = 0;
  for (const { body } of requests) {
    const blocks = blocksOf(body);
    const prefixes = blocks.map((_, index) =>
      blocks
        .slice(0, index + 1)
        .map(({ json }) => json)
        .join(''),
    );
    const found = prefixes.map((prefix, index) => {
      const isNear = blocks.slice(index, index + LOOKBACK + 1).some(({ isMarked }) => isMarked);
      return isNear && cached.has(prefix) ? prefix.length : 0;
    });
    read += Math.max(0, ...found);
    sent += prefixes.at(-1)?.length ?? 0;
    for (const [index, { isMarked }] of blocks.entries()) if (isMarked) cached.add(prefixes[index] ?? '');
  }
  return read / sent;
}

t.test('most of a long turn and of a long session comes from the cache (AI-10)', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  const system: Message = { role: 'system', content: 'Be brief. '.repeat(200) };
  const messages: Message[] = [system, TIME];
  for (let step = 0; step < 10; step++) {
    const calls = [{ id: `call_${step}`, name: 'clock', input: { zone: 'UTC' } }];
    server.enqueue({ thinking: ['Hm.'], calls });
    messages.push(...asMessages(await readAll(connection, { messages, tools: [CLOCK] }), [`${step} ${'noon '.repeat(200)}`]));
  }
  const turn = cachedShare(server.requests);
  t.ok(turn > 0.75, `${Math.round(turn * 100)} % of a turn of ten steps`);

  const before = server.requests.length;
  const session: Message[] = [system];
  for (let turn = 0; turn < 20; turn++) {
    session.push({ role: 'user', content: `Question ${turn}: ${'why '.repeat(50)}` });
    server.enqueue({ text: [`Because ${'of that '.repeat(50)}`] });
    session.push(...asMessages(await readAll(connection, { messages: session, tools: [CLOCK] })));
  }
  const share = cachedShare(server.requests.slice(before));
  t.ok(share > 0.85, `${Math.round(share * 100)} % of a session of twenty turns`);
  t.same(server.refusals, []);
});
