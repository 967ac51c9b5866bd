import {
  type AgentEvent,
  AgentRuntimes,
  type Clock,
  type Contribution,
  type ExtensionPoint,
  type Extensions,
  type HostView,
  type IdSource,
  type Interceptor,
  Interceptors,
  type Message,
  type ModelConnector,
  ModelConnectors,
  type ModelEvent,
  type ModelRequest,
  type Principal,
  type SessionStore,
  SessionStores,
  type Tool,
  type ToolInterceptor,
  ToolInterceptors,
  type ToolSource,
  ToolSources,
} from '@plugboard/kernel';
import {
  Account,
  type AgentEvents,
  Budget,
  type ModelInterceptor,
  ModelInterceptors,
  OPEN,
  type SessionRequest,
  type Target,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import { CONTEXT } from '@plugboard/kernel/injection';
import memoryPlugin from '@plugboard/store-memory';
import { ManualClock, testContext } from '@plugboard/testing';
import definition from '../src/index.js';
import type { Runtime } from '../src/runtime.js';

/**
 * What a model says in one call: batches to yield, or something to throw or to wait for on the way.
 */
export type ModelStep = ModelEvent | Error | Promise<unknown>;

/** A scripted model connection: answers call by call, and records its requests. */
export class ScriptedModel implements ModelConnector {
  readonly model = 'scripted';
  readonly contextWindow = 128_000;
  readonly input: readonly ('text' | 'image')[];
  readonly asked: ModelRequest[] = [];
  readonly signals: AbortSignal[] = [];
  readonly #script: ((request: ModelRequest, call: number) => readonly ModelStep[]) | readonly (readonly ModelStep[])[];

  constructor(
    script: ((request: ModelRequest, call: number) => readonly ModelStep[]) | readonly (readonly ModelStep[])[],
    input: readonly ('text' | 'image')[] = ['text', 'image'],
  ) {
    this.#script = script;
    this.input = input;
  }

  supportsParam(param: string): boolean {
    return ['temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'stop', 'tool_choice', 'parallel_tool_calls'].includes(
      param,
    );
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
    const call = this.asked.push(request);
    this.signals.push(signal);
    const lines =
      typeof this.#script === 'function' ? this.#script(request, call) : (this.#script[call - 1] ?? answerWith('no more lines'));
    for (const line of lines) {
      if (line instanceof Error) throw line;
      if (line instanceof Promise) await Promise.race([line, aborted(signal)]);
      else yield [line];
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

export const END: ModelEvent = { type: 'end', reason: 'stop' };

export function answerWith(text: string, reason: 'stop' | 'length' | 'content_filter' = 'stop'): ModelStep[] {
  return [{ type: 'text', text }, usage(10, 2), { type: 'end', reason }];
}

export function callTools(...wanted: readonly [name: string, input: unknown][]): ModelStep[] {
  return [
    ...wanted.map(([name, input], index) => call(`call_${name}_${index}`, name, input)),
    usage(10, 3),
    { type: 'end', reason: 'tool_calls' },
  ];
}

export function call(id: string, name: string, input: unknown): ModelEvent {
  return { type: 'tool-call', id, name, arguments: typeof input === 'string' ? input : JSON.stringify(input) };
}

export function usage(promptTokens: number, completionTokens: number): ModelEvent {
  return { type: 'usage', usage: { promptTokens, completionTokens, cachedTokens: 1, cacheWriteTokens: 0, reasoningTokens: 0 } };
}

export function tool(
  name: string,
  run: Tool['run'],
  properties: Record<string, unknown> = {},
  required: readonly string[] = [],
): Tool {
  return { name, description: `The tool ${name}.`, inputSchema: { type: 'object', properties, required }, effect: 'read', run };
}

/** A source that by its nature offers this one tool. */
export function singleTool(run: Tool['run'], properties?: Record<string, unknown>, required?: readonly string[]): ToolSource {
  const only = [tool('only', run, properties, required)];
  return { single: true, tools: () => only };
}

export interface TestRuntimeOptions {
  readonly agents?: Record<string, object>;
  readonly settings?: object;
  readonly models?: Record<string, ModelConnector>;
  readonly tools?: Record<string, ToolSource>;
  /** Shared options of the entries under `tools`. */
  readonly shared?: Record<string, Record<string, unknown>>;
  readonly store?: SessionStore;
  readonly interceptors?: readonly Interceptor[];
  readonly toolInterceptors?: Record<string, ToolInterceptor>;
  readonly modelInterceptors?: Record<string, ModelInterceptor>;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  readonly resolvePath?: (path: string) => string;
}

/**
 * A started runtime over plain contributions, with an agent `assistant` on the model `fast` unless
 * the options say otherwise.
 */
export async function startRuntime(options: TestRuntimeOptions) {
  const clock = options.clock ?? new ManualClock();
  const stop = new AbortController();
  const host: { phase: HostView['phase'] } = { phase: 'running' };
  const store = options.store ?? memoryStore(clock);
  const contributed = new Map<unknown, Extensions<unknown>>([
    [ModelConnectors, extensions(options.models ?? {})],
    [ToolSources, extensions(options.tools ?? {}, options.shared)],
    [SessionStores, extensions({ store })],
    [ToolInterceptors, extensions(options.toolInterceptors ?? {})],
    [ModelInterceptors, extensions(options.modelInterceptors ?? {})],
    [Interceptors, extensions(Object.fromEntries((options.interceptors ?? []).map((value, index) => [`i${index}`, value])))],
  ]);
  const withContributions = {
    ...definition,
    check: undefined,
    register(ctx: Parameters<typeof definition.register>[0]) {
      const { resolvePath = ctx.resolvePath } = options;
      const given = { ...ctx, resolvePath, extensions: <T>(point: ExtensionPoint<T>) => contributed.get(point) as Extensions<T> };
      ctx.container.register(CONTEXT, { useValue: given });
      return definition.register(given);
    },
  };
  const context = testContext(withContributions, {
    config: { agents: options.agents ?? { assistant: { model: 'fast' } }, ...options.settings },
    clock,
    ids: options.ids,
    host: {
      version: '0.0.0',
      get phase() {
        return host.phase;
      },
      stopRequested: stop.signal,
      entries: () => [],
      literal: () => undefined,
    },
  });
  const runtime = context.contributed(AgentRuntimes) as Runtime;
  await runtime.start(new AbortController().signal);
  return {
    runtime,
    store,
    clock,
    lines: context.logs,
    host,
    requestStop: () => stop.abort(),
    target: (name = 'assistant', principal: Principal = OPEN) => targetOf(runtime, name, principal),
  };
}

/** A store in memory, with some methods replaced. */
export function storeWith(methods: Partial<SessionStore>): SessionStore {
  return Object.assign(memoryStore(), methods);
}

/** A new, empty session store in memory. */
export function memoryStore(clock: Clock = new ManualClock()): SessionStore {
  return testContext(memoryPlugin, { clock }).contributed(SessionStores);
}

function targetOf(runtime: Runtime, name: string, principal: Principal = OPEN): Target {
  const resolution = runtime.resolve(name, principal);
  if (resolution.kind !== 'target') throw new Error(`"${name}" is ${resolution.kind}`);
  return resolution.target;
}

export function extensions<T>(values: Record<string, T>, shared: Record<string, Record<string, unknown>> = {}): Extensions<T> {
  const all: Contribution<T>[] = Object.entries(values).map(([name, value]) => ({
    name,
    value,
    entry: name,
    shared: shared[name] ?? {},
  }));
  return {
    all: () => all,
    get: (name) => values[name],
    one: () => {
      const [only] = all;
      if (!only) throw new Error('there is none');
      return only.value;
    },
    [Symbol.iterator]: () => all[Symbol.iterator](),
  };
}

/** An account with room for all that a test reads, unless a limit in bytes says otherwise. */
export function accountOf(limit = 100_000_000): Account {
  const account = new Account(new Budget({ name: 'memory of callers', unit: 'bytes', limit, setting: 'limits.memory' }), OPEN);
  account.hold();
  return account;
}

export function user(content: string): Message {
  return { role: 'user', content };
}

export function request(target: Target, more: Partial<TurnRequest> = {}): TurnRequest {
  return {
    target,
    principal: OPEN,
    messages: [user('Hello')],
    clientTools: [],
    params: {},
    incremental: true,
    requestId: 'req_1',
    metadata: {},
    signal: new AbortController().signal,
    ...more,
  } as TurnRequest;
}

export async function collect(events: AgentEvents): Promise<AgentEvent[]> {
  const all: AgentEvent[] = [];
  for await (const batch of events) all.push(...batch);
  return all;
}

export function textOfEvents(events: readonly AgentEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.text : '')).join('');
}

/** The terminal event. */
export function endOf(events: readonly AgentEvent[]) {
  const last = events.at(-1);
  if (last?.type !== 'finished' && last?.type !== 'failed') throw new Error(`the last event is ${last?.type}`);
  return last;
}

/** A model that answers each call when the test releases it. */
export function gatedModel() {
  const begun: { request: ModelRequest; answer: (text: string) => void }[] = [];
  const waiting: (() => void)[] = [];
  const model = new ScriptedModel((asked): ModelStep[] => {
    const gate = Promise.withResolvers<void>();
    let said = '';
    begun.push({
      request: asked,
      answer: (text) => {
        said = text;
        gate.resolve();
      },
    });
    for (const wake of waiting.splice(0)) wake();
    return [
      gate.promise,
      {
        type: 'text',
        get text() {
          return said;
        },
      },
      { type: 'end', reason: 'stop' },
    ];
  });
  /** Waits for the model's nth call, from 1. */
  const call = async (n: number) => {
    while (begun.length < n) await new Promise<void>((resolve) => waiting.push(resolve));
    const found = begun[n - 1];
    if (!found) throw new Error(`no call ${n}`);
    return found;
  };
  return { model, call };
}

/**
 * Sends a user message to the agent `assistant`, in the session `s` by default, and reads the turn
 * to its end.
 */
export function senderFor(
  app: Pick<Awaited<ReturnType<typeof startRuntime>>, 'runtime' | 'target'>,
  principal: Principal = OPEN,
) {
  return (text: string, session: Partial<SessionRequest> = {}, signal = new AbortController().signal) =>
    collect(
      app.runtime.run(request(app.target(), { principal, messages: [user(text)], session: { key: 's', ...session }, signal })),
    );
}
