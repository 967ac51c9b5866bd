import type { AgentEvent, Interceptor, Principal, SessionStore, Tool, ToolInterceptor } from '@plugboard/kernel';
import { conversationId, type TurnRequest } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import {
  answerWith,
  callTools,
  collect,
  type ModelStep,
  memoryStore,
  request,
  ScriptedModel,
  startRuntime,
  tool,
  user,
} from '../../harness.js';

export const ANNA: Principal = { project: 'default', scopes: ['chat'], token: 'anna', tokenId: 'tok_anna' };
export const BEN: Principal = { project: 'default', scopes: ['chat'], token: 'ben', tokenId: 'tok_ben' };
export const BOSS: Principal = { project: 'default', scopes: ['approve'], token: 'boss', tokenId: 'tok_boss' };

interface Options {
  readonly agent?: object;
  readonly steps?: readonly (readonly ModelStep[])[];
  readonly effect?: Tool['effect'];
  readonly toolInterceptors?: Record<string, ToolInterceptor>;
  readonly interceptors?: readonly Interceptor[];
  readonly store?: SessionStore;
  readonly clock?: ManualClock;
  readonly run?: Tool['run'];
  readonly tools?: readonly Tool[];
}

/** A runtime whose agent has a shell that needs approval and a clock that does not. */
export async function start({
  agent = {},
  steps,
  effect = 'write',
  toolInterceptors,
  interceptors,
  store,
  clock = new ManualClock(),
  run,
  tools,
}: Options = {}) {
  const ran: string[] = [];
  const calls: Parameters<Tool['run']>[1][] = [];
  const shell: Tool = {
    ...tool('run', run ?? (() => 'done'), { command: { type: 'string' } }, ['command']),
    effect,
  };
  const watched: Tool = {
    ...shell,
    run: (input, call) => {
      ran.push(String(input.command));
      calls.push(call);
      return shell.run(input, call);
    },
  };
  const model = new ScriptedModel(steps ?? [callTools(['shell__run', { command: 'ls' }]), answerWith('I listed it.')]);
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['shell', 'clock'], approve: ['shell/*'], ...agent } },
    models: { fast: model },
    tools: {
      shell: { tools: () => (tools ? [...tools] : undefined) ?? [watched, tool('look', () => 'nothing', {})] },
      clock: { single: true, tools: () => [NOON] },
    },
    ...(toolInterceptors && { toolInterceptors }),
    ...(interceptors && { interceptors }),
    store: store ?? memoryStore(clock),
    clock,
  });
  const ask = (text: string | undefined, more: Partial<TurnRequest> = {}) => {
    const messages = text === undefined ? [] : [user(text)];
    const asked = { principal: ANNA, session: { key: 's' }, messages, ...more } as TurnRequest;
    return collect(app.runtime.run(request(app.target(), asked)));
  };
  const audit = () => app.lines.filter(({ log }) => log === 'audit');
  return { ...app, model, ran, calls, ask, audit };
}

export const NOON = tool('time', () => 'noon', {});

/** The codes and ids of the requests for approval among events. */
export function asked(events: readonly AgentEvent[]) {
  return events.flatMap((event) => (event.type === 'approval' ? [event] : []));
}

/** What the model was told of its calls, in its nth request. */
export function results({ model }: { readonly model: ScriptedModel }, nth: number): readonly unknown[] {
  return (model.asked[nth]?.messages ?? []).flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

export const idOf = conversationId({ project: 'default', agent: 'assistant', key: 's' });
