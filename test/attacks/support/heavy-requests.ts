import type { ChatRequest } from '@plugboard/testing';
import { STORE, TRANSPORTS } from './all-routes.js';
import type { ServerProcess } from './server-process.js';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Two callers of one project that attack, and an innocent one of another project. */
export const [FIRST, SECOND, INNOCENT] = ['token-of-first-attacker', 'token-of-second-attacker', 'token-of-the-innocent'];

const SCOPES = '[chat, "models:read", "sessions:read", "sessions:write", approve, admin]';

/**
 * All routes of the distribution. The attackers' agents have a model server of their own
 * (`ATTACKED_URL`), so that the innocent one does not wait for theirs. One agent waits for
 * approvals.
 */
export const HEAVY_YAML = `${TRANSPORTS}${STORE}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}", contextWindow: 100000000 }
  busy: { use: openai, baseUrl: "\${ATTACKED_URL}", model: big-1, apiKey: none, contextWindow: 100000000 }
tools: { clock: {} }
agents:
  attacked: { model: busy }
  asking: { model: fast, tools: [clock], approve: [clock], clientTools: passthrough }
  innocents: { model: fast, project: quiet }
projects: { quiet: { defaultAgent: innocents } }
defaultAgent: attacked
log: { level: warn }
auth: { bearer: { tokens: [
  { name: first, project: default, scopes: ${SCOPES}, token: ${FIRST} },
  { name: second, project: default, scopes: ${SCOPES}, token: ${SECOND} },
  { name: innocent, project: quiet, token: ${INNOCENT} } ] } }
`;

/** A request that is repeated. Without a body, it has none. */
export interface HeavyRequest {
  readonly path: string;
  readonly body?: object;
}

/** Messages that are sent on a socket, again after the last event for them. */
export interface HeavySocket {
  readonly socket: string;
  /** A message before them. `RESPONSE` in the others is the id of the response to it. */
  readonly opening?: object;
  readonly messages: readonly object[];
}

/** Ids of what is stored: the largest things that fit a server with a small heap. */
interface Stored {
  readonly conversation: string;
  /** Another one, of 3 MB. */
  readonly other: string;
  readonly item: string;
  /** An item of a turn that waits for approval, by the id of the approval. */
  readonly approval: string;
  readonly response: string;
}

type Heavy = HeavyRequest | HeavySocket | ((stored: Stored) => HeavyRequest | HeavySocket);

const TEXT = 'word '.repeat(50 * KIB);
const NOTHING = `conv_${'0'.repeat(40)}`;
const chat = { model: 'attacked', messages: [{ role: 'user', content: TEXT }] };
const response = { model: 'attacked', input: TEXT };
const messages = { model: 'attacked', max_tokens: 100, messages: [{ role: 'user', content: TEXT }] };

/**
 * For each route of the distribution and each message of a socket, what costs the server much. A
 * new one is added here: with what a caller can ask of it at worst.
 */
export const HEAVY_REQUESTS: Readonly<Record<string, Heavy>> = {
  'POST /v1/chat/completions': { path: '/v1/chat/completions', body: chat },
  'GET /v1/conversations': { path: '/v1/conversations?limit=100&search=nowhere' },
  'POST /v1/conversations': {
    path: '/v1/conversations',
    body: { agent: 'attacked', id: 'large', items: [{ type: 'message', role: 'user', content: TEXT }] },
  },
  'GET /v1/conversations/:id': ({ conversation }) => ({ path: `/v1/conversations/${conversation}` }),
  'POST /v1/conversations/:id': ({ conversation }) => ({
    path: `/v1/conversations/${conversation}`,
    body: { metadata: Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`key${at}`, 'x'.repeat(512)])) },
  }),
  'DELETE /v1/conversations/:id': { path: `/v1/conversations/${NOTHING}` },
  'POST /v1/conversations/:id/fork': ({ conversation }) => ({
    path: `/v1/conversations/${conversation}/fork`,
    body: { id: 'large' },
  }),
  'POST /v1/conversations/:id/cancel': ({ other }) => ({ path: `/v1/conversations/${other}/cancel` }),
  'GET /v1/conversations/:id/items': ({ conversation }) => ({ path: `/v1/conversations/${conversation}/items?limit=100` }),
  'POST /v1/conversations/:id/items': {
    path: `/v1/conversations/${NOTHING}/items`,
    body: { items: [{ type: 'message', role: 'user', content: TEXT }] },
  },
  'GET /v1/conversations/:id/items/:item': ({ conversation, item }) => ({
    path: `/v1/conversations/${conversation}/items/${item}`,
  }),
  'GET /v1/conversations/:id/turns': ({ conversation }) => ({ path: `/v1/conversations/${conversation}/turns?limit=100` }),
  'GET /v1/approvals': { path: '/v1/approvals?limit=100' },
  'POST /v1/approvals/:id': { path: '/v1/approvals/mcpr_unknown', body: { approve: true, reason: TEXT } },
  'POST /v1/messages': { path: '/v1/messages', body: messages },
  'POST /v1/messages/count_tokens': { path: '/v1/messages/count_tokens', body: messages },
  'GET /v1/messages/*rest': { path: '/v1/messages/batches' },
  'POST /v1/messages/*rest': { path: '/v1/messages/batches', body: {} },
  'DELETE /v1/messages/*rest': { path: '/v1/messages/batches/one' },
  'GET /v1/agents/:name': { path: '/v1/agents/asking' },
  'GET /v1/agents/:name/tools/:entry/:tool': { path: '/v1/agents/asking/tools/clock/clock' },
  'POST /v1/agents/:name/tools/:entry/:tool': {
    path: '/v1/agents/asking/tools/clock/clock',
    body: { arguments: { zone: TEXT } },
  },
  'GET /v1/models': { path: '/v1/models' },
  'GET /v1/models/*id': { path: '/v1/models/attacked' },
  'GET /health': { path: '/health' },
  'GET /healthz': { path: '/healthz' },
  'GET /readyz': { path: '/readyz' },
  'GET /v1/status': { path: '/v1/status' },
  'POST /v1/responses': { path: '/v1/responses', body: response },
  'POST /v1/responses/compact': { path: '/v1/responses/compact', body: response },
  'POST /v1/responses/input_tokens': { path: '/v1/responses/input_tokens', body: response },
  'GET /v1/responses/:response_id': (stored) => ({ path: `/v1/responses/${stored.response}` }),
  'GET /v1/responses/:response_id/input_items': (stored) => ({ path: `/v1/responses/${stored.response}/input_items` }),
  'DELETE /v1/responses/:response_id': { path: '/v1/responses/resp_000000000000000000000000' },
  'POST /v1/responses/:response_id/cancel': (stored) => ({ path: `/v1/responses/${stored.response}/cancel` }),
  'POST /v1/ephemeral_tokens': { path: '/v1/ephemeral_tokens', body: {} },
  'GET /playground': { path: '/playground' },
  'GET /playground/*file': { path: '/playground/app.js' },
  'GET /playground/settings.json': { path: '/playground/settings.json' },
  'GET /': { path: '/' },
  'HEAD /': { path: '/' },
  'HEAD /api/hello': { path: '/api/hello' },
  'SOCKET response.create': { socket: '/v1/live', messages: [{ type: 'response.create', ...response }] },
  'SOCKET response.cancel': {
    socket: '/v1/live',
    messages: [{ type: 'response.cancel', response_id: TEXT }, { type: 'svc:ping' }], // a cancel has no answer
  },
  'SOCKET svc:response.resume': {
    socket: '/v1/live',
    opening: { type: 'response.create', model: 'attacked', input: 'Answer at length' },
    messages: [{ type: 'svc:response.resume', response_id: 'RESPONSE', starting_after: 0 }],
  },
  'SOCKET svc:conversation.watch': ({ conversation }) => ({
    socket: '/v1/live',
    messages: [{ type: 'svc:conversation.watch', conversation }],
  }),
  'SOCKET svc:ping': { socket: '/v1/live', messages: [{ type: 'svc:ping', id: TEXT }] },
  // No routes or messages of their own: the other socket, look-ups that once walked a session, and
  // what a response carries on.
  'SOCKET /v1/responses': {
    socket: '/v1/responses',
    messages: [{ type: 'response.create', model: 'attacked', input: TEXT, store: false }],
  },
  'GET item of an approval': ({ conversation, approval }) => ({ path: `/v1/conversations/${conversation}/items/${approval}` }),
  'POST /v1/responses, continued': (stored) => ({
    path: '/v1/responses',
    body: { model: 'attacked', input: 'Go on', previous_response_id: stored.response, store: false },
  }),
};

/** What is sent for a row of the table, as `flood.mjs` takes it. */
export interface Sent extends Omit<HeavyRequest & HeavySocket, 'body' | 'path' | 'socket' | 'messages' | 'opening'> {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly opening?: string;
  /** What is sent on a socket, in place of a request. */
  readonly messages?: readonly string[];
}

/** The request of a row, for one of the attackers. */
export function sentBy(token: string, name: string, stored: Stored): Sent {
  const row = HEAVY_REQUESTS[name];
  if (!row) throw new Error(`add ${name} to HEAVY_REQUESTS`);
  const asked = typeof row === 'function' ? row(stored) : row;
  const authorization = `Bearer ${token}`;
  if ('socket' in asked) {
    const messages = asked.messages.map((message) => JSON.stringify(message));
    const opening = asked.opening && { opening: JSON.stringify(asked.opening) };
    return { method: 'SOCKET', path: asked.socket, headers: { authorization }, messages, ...opening };
  }
  const [method = 'GET'] = name.split(' ');
  if (!asked.body) return { method, path: asked.path, headers: { authorization } };
  const body = JSON.stringify(asked.body);
  return { method, path: asked.path, headers: { authorization, 'content-type': 'application/json' }, body };
}

/**
 * Stores a conversation of 12 MB in large items with calls that wait for approval, a response of
 * 3 MB, and many small sessions.
 */
export async function storeHeavy(server: Pick<ServerProcess, 'models' | 'request'>): Promise<Stored> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${FIRST}` };
  const post = async (path: string, body: object) => {
    const { status, text } = await server.request(path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (status !== 200) throw new Error(`${path}: ${status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  };
  const get = async (path: string) => JSON.parse((await server.request(path, { headers })).text);
  const sessions = Array.from({ length: 300 }, (_, n) => ({ agent: 'attacked', metadata: { n: `${n}` } }));
  await Promise.all(sessions.map((session) => post('/v1/conversations', session)));
  const items = Array.from({ length: 4 }, () => ({ type: 'message', role: 'user', content: 'x'.repeat(3 * MIB) }));
  const { id: other } = await post('/v1/conversations', { agent: 'attacked', items: items.slice(1, 2) });
  const { id } = await post('/v1/conversations', { agent: 'asking', id: 'large', items });
  server.models.respond(({ body }) => {
    const name = toolOf(body);
    // Calls that repeat each other would not wait.
    const call = (_: unknown, at: number) => ({ name, arguments: { timeZone: `Etc/GMT-${at % 14}` } });
    return name === '' ? { text: 'ok' } : { toolCalls: Array.from({ length: 20 }, call) };
  });
  const schema = { type: 'object', description: 'x'.repeat(MIB), properties: {}, additionalProperties: false };
  const asked = await post('/v1/responses', {
    model: 'asking',
    conversation: id,
    input: 'Ask',
    text: { format: { type: 'json_schema', name: 'large', schema } },
  });
  const carried = { type: 'message', role: 'developer', content: 'y'.repeat(MIB) };
  const stored = await post('/v1/responses', {
    model: 'attacked',
    input: [carried, { type: 'message', role: 'user', content: 'z'.repeat(2 * MIB) }],
  });
  const waiting = asked.output.find(({ type }: { type: string }) => type === 'mcp_approval_request');
  const { data } = await get(`/v1/conversations/${id}/items?limit=1&order=asc`);
  return { conversation: id, other, item: data[0].id, approval: waiting?.id ?? 'mcpr_none', response: stored.id };
}

/** The name of the tool that a request to the model server offers; empty if it offers none. */
function toolOf({ tools }: ChatRequest): string {
  const [, name = ''] = /"name":"([^"]+)"/.exec(JSON.stringify(tools ?? '')) ?? [];
  return name;
}
