import { type AgentEvent, AgentRuntimes, type Principal } from '@plugboard/kernel';
import {
  type AgentEvents,
  type AgentRuntime,
  type Approvals,
  type ClaimResult,
  type Conversations,
  type IdempotencyKey,
  NO_USAGE,
  OPEN,
  type Target,
  type TargetResolution,
  TurnError,
  type TurnFinished,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import { ProtocolError } from '@plugboard/openai-protocol';
import { ManualClock, testContext, turnEvents } from '@plugboard/testing';
import { type HttpReply, type HttpRequest, HttpRoutes } from '@plugboard/transport-http';
import { testHttpRequest } from '@plugboard/transport-http/testing';
import chatCompletions, { type StreamEncoder, StreamEncoders } from '../../src/index.js';

/** 2026-11-21 14:05:09 UTC. */
export const NOW = Date.UTC(2026, 10, 21, 14, 5, 9);

export const HI = [{ role: 'user', content: 'Hi' }];

export const agent: Target = {
  kind: 'agent',
  name: 'assistant',
  project: 'default',
  clientTools: 'ignore',
  fingerprint: '0123456789ab',
  input: ['text', 'image'],
  connection: 'fast',
  onBusy: 'enqueue',
  toolVisibility: 'full',
  onDisconnect: 'cancel',
  forwardsParam: () => true,
  nameAtModel: (_, tool) => tool,
};

export const finished: TurnFinished = { type: 'finished', reason: 'stop', usage: NO_USAGE };

/** A turn of one step that says these texts. */
export function says(...texts: string[]): AgentEvent[][] {
  return [
    [{ type: 'started', turnId: 'turn_1', agent: 'assistant' }],
    [{ type: 'step', step: 1, connection: 'fast' }, ...texts.map((text) => ({ type: 'text', text }) as const)],
    [finished],
  ];
}

export async function* events(batches: Iterable<readonly AgentEvent[]>): AgentEvents & AsyncGenerator<readonly AgentEvent[]> {
  yield* batches;
}

const sse: StreamEncoder = {
  headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  before: 'data: ',
  after: '\n\n',
  done: 'data: [DONE]\n\n',
  comment: (text) => `: ${text}\n\n`,
  keepAliveEvery: 15_000,
};

export interface RouteOptions {
  /** What the runtime answers; by default it says "Hello". */
  readonly batches?: Iterable<readonly AgentEvent[]>;
  readonly run?: (turn: TurnRequest) => AgentEvents;
  /** What is known of a request with an idempotency key; by default nothing. */
  readonly claimed?: ClaimResult;
  readonly target?: Partial<Target>;
  readonly resolution?: TargetResolution;
  /** Finds a session by its opaque id; by default there is none. */
  readonly conversation?: Conversations['get'];
  /** The plugin's options. */
  readonly config?: object;
  /** False: the plugin that frames streams is not there. */
  readonly streams?: boolean;
  readonly principal?: Principal;
  /** Raw header lines: name, value, name, value … */
  readonly rawHeaders?: readonly string[];
}

/**
 * The route under test with everything around it: a scripted runtime, a clock that stands, ids that
 * count.
 */
export function startRoute(options: RouteOptions = {}) {
  const turns: TurnRequest[] = [];
  const resolved: { name: string; principal: Principal }[] = [];
  const claims: { key: IdempotencyKey; fingerprint: string }[] = [];
  const notes: Record<string, unknown> = {};
  const clock = new ManualClock(NOW);
  const runtime: AgentRuntime = {
    resolve: (name, principal) => {
      resolved.push({ name, principal });
      return options.resolution ?? { kind: 'target', target: { ...agent, ...options.target } };
    },
    list: () => [],
    claim: async (key, fingerprint) => {
      const claim = { key, fingerprint, release: () => {} };
      claims.push(claim);
      return options.claimed ?? { kind: 'new', claim };
    },
    run: (turn) => {
      turns.push(turn);
      return turnEvents(options.run?.(turn) ?? events(options.batches ?? says('Hello')));
    },
    conversations: { get: options.conversation ?? noConversation } as Partial<Conversations> as Conversations,
    approvals: {} as Approvals,
    ready: async () => true,
  };
  const context = testContext(chatCompletions, { config: options.config, clock });
  context.provide(AgentRuntimes, runtime);
  if (options.streams !== false) context.provide(StreamEncoders, sse, 'sse');
  const route = context.contributed(HttpRoutes);
  const rawHeaders = options.rawHeaders ?? [];
  const gone = new AbortController();
  const request = (body: unknown): HttpRequest =>
    testHttpRequest({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: joined(rawHeaders),
      rawHeaders,
      body,
      principal: options.principal ?? OPEN,
      acceptedAt: clock.monotonic(),
      signal: gone.signal,
      note: (facts) => void Object.assign(notes, facts),
    });
  return {
    route,
    turns,
    claims,
    resolved,
    notes,
    clock,
    gone,
    post: async (body: unknown): Promise<HttpReply> => route.handle(request(body)),
    /** What a request with these fields besides model and messages is answered. */
    ask: async (fields: Readonly<Record<string, unknown>> = {}): Promise<HttpReply> =>
      route.handle(request({ model: 'assistant', messages: HI, ...fields })),
  };
}

async function noConversation(): Promise<never> {
  throw new TurnError('conversation_not_found', 'Not found.');
}

/** The error that a request is refused with. */
export async function errorOf(reply: Promise<HttpReply>): Promise<ProtocolError> {
  try {
    await reply;
  } catch (error) {
    if (error instanceof ProtocolError) return error;
    throw error;
  }
  throw new Error('the request was not refused');
}

/** All that a streamed reply writes, item by item. */
export async function chunksOf(reply: HttpReply): Promise<string[]> {
  const { body } = reply;
  if (typeof body !== 'object' || !(Symbol.asyncIterator in body)) throw new Error('the reply is not a stream');
  const items: string[] = [];
  for await (const item of body) if (item !== '') items.push(item); // an empty one is not written
  return items;
}

/** The JSON of every frame of a stream, `[DONE]` as it stands. */
export function frames(stream: readonly string[]): unknown[] {
  return stream
    .join('')
    .split('\n\n')
    .slice(0, -1)
    .filter((frame) => !frame.startsWith(':'))
    .map((frame) => {
      const payload = frame.replace(/^data: /, '');
      return payload === '[DONE]' ? payload : JSON.parse(payload);
    });
}

/** A chunk, as far as tests look into it. */
interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: { readonly role?: string; readonly content?: string; readonly tool_calls?: readonly unknown[] };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
}

export function chunks(stream: readonly string[]): Chunk[] {
  return frames(stream).filter((frame): frame is Chunk => typeof frame === 'object' && frame !== null && 'choices' in frame);
}

export function textOf(stream: readonly string[]): string {
  return chunks(stream)
    .map((chunk) => chunk.choices[0]?.delta.content ?? '')
    .join('');
}

/** As Node joins header lines. */
function joined(rawHeaders: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? '';
    headers[name] = headers[name] === undefined ? (rawHeaders[i + 1] ?? '') : `${headers[name]}, ${rawHeaders[i + 1]}`;
  }
  return headers;
}
