/** The dialogue of the reference on every surface: what a real server answers is what it shows. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { LiveSocket } from '../support/live-socket.js';
import { CALLERS, codeIn, ran, script, startApprovals } from './support.js';

const { anna, boss } = CALLERS;
const REFERENCE = readFileSync(new URL('../../docs/reference/approvals.md', import.meta.url), 'utf8');
const COMMAND = 'rm -r /var/tmp/*';
const QUESTION = 'Clean up the disk';
const ANSWER = 'Done: 3 GB are free.';

const server = await startApprovals(t, { transports: '  responses: {}\n  websocket: {}\n  messages: {}\n  approvals: {}\n' });

interface Item {
  readonly id: string;
  readonly type: string;
  readonly content?: readonly { readonly type: string; readonly text: string }[];
  readonly [field: string]: unknown;
}

/** The fields of an item that the reference shows. */
function shown({ id, content, ...item }: Item): object {
  if (item.type === 'mcp_approval_request') return { id, ...item };
  return content ? { type: item.type, content: content.map(({ type, text }) => ({ type, text })) } : item;
}

/** The lines of a dialogue. Values that differ each time are replaced by those of the reference. */
function dialogue(
  lines: readonly (readonly [direction: string, body: object])[],
  values: Readonly<Record<string, string>>,
): string {
  const text = lines.map(([direction, body]) => `${direction} ${JSON.stringify(body)}`).join('\n');
  return Object.entries(values).reduce((all, [value, name]) => all.replaceAll(value, name), text);
}

/** The reference shows the dialogue as it was, and the call has run once more. */
function check(t: Test, count: number, text: string): void {
  t.ok(REFERENCE.includes(`\`\`\`\n${text}\n\`\`\`\n`), `docs/reference/approvals.md must show:\n${text}`);
  t.strictSame(ran(server), Array(count).fill(COMMAND));
}

/** A message on chat completions: the lines of the dialogue, and the text of the answer. */
async function chat(content: string) {
  const request = { model: 'ops', session_id: 'disk', messages: [{ role: 'user', content }] };
  const { body } = await server.chat(request, anna);
  const [choice] = (body as { readonly choices: readonly Item[] }).choices;
  const { role = '', content: text = '' } = (choice?.message ?? {}) as { readonly role?: string; readonly content?: string };
  const answer = { choices: [{ message: { role, content: text }, finish_reason: choice?.finish_reason }] };
  return { lines: [['>', request] as const, ['<', answer] as const], text };
}

t.test('AP-3 chat completions ask with a text', async (t) => {
  script(server, [COMMAND], ANSWER);
  const asked = await chat(QUESTION);
  const decided = await chat(`approve ${codeIn(asked.text)}`);
  check(t, 1, dialogue([...asked.lines, ...decided.lines], { [codeIn(asked.text)]: 'K7M2QX' }));
});

t.test('AP-3 Messages ask with a text, plain and streamed', async (t) => {
  script(server, [COMMAND], ANSWER);
  const headers = { ...anna, 'x-session-id': 'messages' };
  const say = async (content: string) => {
    const request = { model: 'ops', max_tokens: 500, messages: [{ role: 'user', content }] };
    const { body } = await server.request('POST', '/v1/messages', headers, request);
    const { role, content: blocks, stop_reason } = body as Item & { readonly role: string };
    const answer = { role, content: blocks, stop_reason };
    return { lines: [['>', request] as const, ['<', answer] as const], text: blocks?.[0]?.text ?? '' };
  };
  const asked = await say(QUESTION);
  const decided = await say(`approve ${codeIn(asked.text)}`);
  check(t, 2, dialogue([...asked.lines, ...decided.lines], { [codeIn(asked.text)]: 'K7M2QX' }));

  script(server, ['make'], 'I did not.');
  const streamed = async (content: string) =>
    (
      await server.request('POST', '/v1/messages', headers, {
        model: 'ops',
        max_tokens: 500,
        stream: true,
        messages: [{ role: 'user', content }],
      })
    ).text;
  const question = await streamed('Make it');
  t.match(question, /"text_delta","text":"The tool `shell\/run` needs approval/);
  t.match(question, /"stop_reason":"end_turn"/);
  t.match(await streamed(`deny ${codeIn(question)} because not now`), /I did not\./);
  t.match(server.asked.messages.at(-1), { role: 'tool', content: /The reason: not now/ });
});

t.test('AP-2 Responses have items', async (t) => {
  script(server, [COMMAND], ANSWER);
  const values: Record<string, string> = {};
  const say = async (name: string, input: unknown, more: object = {}) => {
    const request = { model: 'ops', input, ...more };
    const { body } = await server.request('POST', '/v1/responses', anna, request);
    const { id, status, output } = body as { readonly id: string; readonly status: string; readonly output: readonly Item[] };
    values[id] = name;
    return { lines: [['>', request] as const, ['<', { id, status, output: output.map(shown) }] as const], id, output };
  };
  const asked = await say('resp_1', QUESTION);
  const request = asked.output[0]?.id ?? '';
  values[request] = 'mcpr_1';
  const decision = { type: 'mcp_approval_response', approval_request_id: request, approve: true };
  const decided = await say('resp_2', [decision], { previous_response_id: asked.id });
  check(t, 3, dialogue([...asked.lines, ...decided.lines], values));
});

t.test('AP-2 the socket has the same items as events', async (t) => {
  script(server, [COMMAND], ANSWER);
  const socket = await LiveSocket.open(t, server, { path: '/v1/live', headers: anna });
  const say = async (input: unknown) => {
    const request = { type: 'response.create', model: 'ops', conversation: 'live', input };
    socket.send(request);
    const items = (await socket.turn()).flatMap(({ type, output_index, item }) =>
      type === 'response.output_item.done' ? [{ type, output_index, item: shown(item as Item) }] : [],
    );
    const end = { type: 'response.completed', response: { status: 'completed' } };
    return { lines: [['>', request] as const, ...[...items, end].map((event) => ['<', event] as const)], items };
  };
  const asked = await say(QUESTION);
  const { id = '' } = (asked.items[0]?.item ?? {}) as Partial<Item>;
  const decided = await say([{ type: 'mcp_approval_response', approval_request_id: id, approve: true }]);
  check(t, 4, dialogue([...asked.lines, ...decided.lines], { [id]: 'mcpr_1' }));
});

t.test('AP-6 another person decides at /v1/approvals', async (t) => {
  script(server, [COMMAND], ANSWER);
  const { text } = await chat(QUESTION);
  const { body: listed } = await server.get('/v1/approvals', boss);
  const { id, session, agent, tool, arguments: args } = (listed as { readonly data: readonly [Item] }).data[0];
  const decision = { approve: true };
  const { status, body: decided } = await server.request('POST', `/v1/approvals/${id}`, boss, decision);
  t.equal(status, 202);
  const lines = [
    ['> GET /v1/approvals', {}],
    ['<', { data: [{ id, session, agent, tool, arguments: args }] }],
    [`> POST /v1/approvals/${id}`, decision],
    ['<', { id, approve: (decided as Item).approve }],
    ...(await chat('Go on')).lines,
  ] as const;
  check(t, 5, dialogue(lines, { [id]: 'mcpr_1' }).replace('approvals {}', 'approvals'));
  t.match(text, /needs approval/);
});
