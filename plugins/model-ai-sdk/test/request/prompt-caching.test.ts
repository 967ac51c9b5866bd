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

t.test('each request begins with the bytes of the one before, whatever the order of the tools (AI-10)', async (t) => {
  const [first, ...rest] = await turn(t, 'anthropic', 4);
  let before = prefixOf(first?.body ?? {});
  for (const { body } of rest) {
    const prefix = prefixOf(body);
    t.ok(prefix.startsWith(before));
    before = prefix;
  }
  const { server, ...connection } = await open(t, 'anthropic');
  const tools = ['b', 'a', 'c'].map((name) => ({ ...CLOCK, name }));
  for (const list of [tools, tools.toReversed()]) await readAll(connection, { messages: [TIME], tools: list });
  t.equal(JSON.stringify(server.requests[0]?.body.tools), JSON.stringify(server.requests[1]?.body.tools));
});
