import { type AgentEvent, AgentRuntimes, type Principal } from '@plugboard/kernel';
import {
  type AgentEvents,
  type AgentRuntime,
  type ClaimResult,
  type Conversations,
  NO_USAGE,
  OPEN,
  type Target,
  type TargetInfo,
  type TargetResolution,
  TurnError,
  type TurnFinished,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import { ManualClock, testContext, turnEvents } from '@plugboard/testing';
import { HttpError, type HttpReply, type HttpRequest, HttpRoutes } from '@plugboard/transport-http';
import { testHttpRequest } from '@plugboard/transport-http/testing';
import plugin from '../../src/index.js';

export const HI = [{ role: 'user', content: 'Hi' }];

export const agent: Target = {
  kind: 'agent',
  name: 'assistant',
  project: 'default',
  clientTools: undefined,
  fingerprint: '0123456789ab',
  input: ['text', 'image'],
  connection: 'fast',
  onBusy: 'enqueue',
  toolVisibility: 'full',
  onDisconnect: 'cancel',
  forwardsParam: () => true,
  nameAtModel: (entry, tool) => (entry === tool ? tool : `${entry}__${tool}`),
};

export const finished: TurnFinished = { type: 'finished', reason: 'stop', usage: NO_USAGE };
export const started: AgentEvent = { type: 'started', turnId: 'turn_1', agent: 'assistant' };
export const step = (number: number): AgentEvent => ({ type: 'step', step: number, connection: 'fast' });
export const text = (words: string): AgentEvent => ({ type: 'text', text: words });

/** A turn of one step that says these texts. */
export function says(...texts: string[]): AgentEvent[][] {
  return [[started], [step(1), ...texts.map(text)], [finished]];
}

export interface RouteOptions {
  /** The events of the turn; by default it says "Hello". */
  readonly batches?: Iterable<readonly AgentEvent[]>;
  readonly claimed?: ClaimResult;
  readonly target?: Partial<Target>;
  readonly resolution?: TargetResolution;
  readonly conversation?: Conversations['get'];
  readonly config?: object;
  readonly principal?: Principal;
  readonly listed?: readonly TargetInfo[];
}

async function* events(batches: Iterable<readonly AgentEvent[]>): AgentEvents {
  yield* batches;
}

/** The routes of the plugin over a scripted runtime. */
export function startRoutes(options: RouteOptions = {}) {
  const turns: TurnRequest[] = [];
  const runtime: AgentRuntime = {
    resolve: () => options.resolution ?? { kind: 'target', target: { ...agent, ...options.target } },
    list: () => options.listed ?? [],
    claim: async (key, fingerprint) => options.claimed ?? { kind: 'new', claim: { key, fingerprint, release: () => {} } },
    run: (turn) => {
      turns.push(turn);
      return turnEvents(events(options.batches ?? says('Hello')));
    },
    conversations: {
      get:
        options.conversation ??
        (() => Promise.reject(new TurnError('conversation_not_found', 'There is no conversation with this id.'))),
    } as Partial<Conversations> as Conversations,
    approvals: {} as AgentRuntime['approvals'],
    ready: async () => true,
  };
  const context = testContext(plugin, { config: options.config ?? {}, clock: new ManualClock() });
  context.provide(AgentRuntimes, runtime);
  const ask = async (method: string, path: string, request: Partial<HttpRequest> = {}): Promise<HttpReply> => {
    const route = context.contributed(HttpRoutes, `${method} ${path}`);
    return route.handle(testHttpRequest({ method, path, principal: options.principal ?? OPEN, ...request }));
  };
  return {
    turns,
    ask,
    /** `POST /v1/messages` with what every request has. */
    post: (fields: object, headers: Readonly<Record<string, string>> = {}) =>
      ask('POST', '/v1/messages', {
        body: { model: 'assistant', max_tokens: 100, messages: HI, ...fields },
        headers,
        rawHeaders: Object.entries(headers).flat(),
      }),
  };
}

/** Sends a request to an agent that says "Hello", and returns the turn that it became. */
export async function turnOf(fields: object, options: RouteOptions = {}, headers: Readonly<Record<string, string>> = {}) {
  const { post, turns } = startRoutes(options);
  const reply = await post(fields, headers);
  const [turn] = turns;
  if (!turn) throw new Error('no turn was run');
  return { turn, reply, ignored: reply.headers?.['x-ignored-params'] };
}

/** The error of a request: its status, type and message. */
export async function refusalOf(fields: object, options: RouteOptions = {}, headers: Readonly<Record<string, string>> = {}) {
  const { post, turns } = startRoutes(options);
  try {
    const { body } = await post(fields, headers);
    throw new Error(`it was answered: ${JSON.stringify(body)}`);
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    const { status, message, headers: sent } = error;
    return { status, type: 'type' in error ? error.type : undefined, message, headers: sent, turns: turns.length };
  }
}

export interface SentEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The events of a stream. The name of each must be its type. */
export async function eventsOf({ body }: HttpReply): Promise<SentEvent[]> {
  let sent = '';
  for await (const piece of body as AsyncIterable<string>) sent += piece;
  return sent
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => {
      const [, name, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
      const event = JSON.parse(data) as SentEvent;
      if (event.type !== name) throw new Error(`the event ${name} has the type ${event.type}`);
      return event;
    });
}
