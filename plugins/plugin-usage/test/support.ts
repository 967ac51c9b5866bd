import { AgentRuntimes, type IdSource, type ModelEvent, type Principal, type StateStore } from '@plugboard/kernel';
import { type ModelCall, ModelInterceptors, NO_USAGE, OPEN, type Usage } from '@plugboard/kernel/contracts';
import { ManualClock, ScriptedRuntime, type TestContext, testContext, testModelCall } from '@plugboard/testing';
import { HttpRoutes } from '@plugboard/transport-http';
import { testHttpRequest } from '@plugboard/transport-http/testing';
import plugin from '../src/index.js';

/** What `check` sees of the file. */
export const AROUND = {
  entries: (section: string) =>
    ({ models: ['fast', 'slow'], agents: ['assistant', 'writer'], projects: ['acme', 'beta'] })[section] ?? [],
};

export const PRICES = {
  fast: { input: 2, cachedInput: 0.5, cacheWrite: 2.5, output: 8, reasoning: 10 },
  slow: { input: 1, output: 1 },
};

/** A row as `GET /v1/usage` shows it. */
export type Row = Readonly<Record<string, unknown>> & { readonly calls: number; readonly cost: string };

export interface Report {
  readonly currency: string;
  readonly from: string;
  readonly to: string;
  readonly data: readonly Row[];
  readonly total: Row;
  readonly budgets: readonly Readonly<Record<string, unknown>>[];
}

interface EntryOptions {
  readonly config?: object;
  readonly clock?: ManualClock;
  /** That of another entry, as of another server. */
  readonly state?: StateStore;
}

/** Every server has ids of its own. */
let servers = 0;
const ids: IdSource = {
  base62: (length) => String(++servers).padStart(length, '0'),
  hex: (length) => String(++servers).padStart(length, '0'),
  fraction: () => 0.5,
};

/** An entry of the plugin that has started, without a server. */
export class UsageEntry {
  readonly ctx: TestContext;
  readonly clock: ManualClock;

  private constructor(ctx: TestContext, clock: ManualClock) {
    this.ctx = ctx;
    this.clock = clock;
  }

  static async start({ config = { prices: PRICES }, clock = new ManualClock(), state }: EntryOptions = {}): Promise<UsageEntry> {
    const ctx = testContext(plugin, { config, clock, ids, check: AROUND, ...(state && { state }) });
    ctx.provide(AgentRuntimes, new ScriptedRuntime({ agents: ['assistant', 'writer'] }));
    await ctx.lifecycle.start?.(new AbortController().signal);
    return new UsageEntry(ctx as TestContext, clock);
  }

  /** Asks a scripted model through the interceptor. @returns what the turn received. */
  async call(answer: Answer = usage(), about: Partial<ModelCall> = {}): Promise<readonly ModelEvent[]> {
    const seen: ModelEvent[] = [];
    for await (const batch of this.open(answer, about)) seen.push(...batch);
    return seen;
  }

  /** The same, to be read as it comes. */
  open(answer: Answer = usage(), about: Partial<ModelCall> = {}): AsyncIterable<readonly ModelEvent[]> {
    const intercept = this.ctx.contributed(ModelInterceptors);
    return intercept(testModelCall(about), () => batchesOf(answer));
  }

  /** Stores what waits. */
  async write(): Promise<void> {
    this.clock.advance(500);
    await this.report();
  }

  /** `GET /v1/usage`. */
  async report(query = '', principal: Principal = OPEN): Promise<Report> {
    const route = this.ctx.contributed(HttpRoutes);
    const { body } = await route.handle(testHttpRequest({ query: new URLSearchParams(query), principal }));
    return body as Report;
  }

  /** Changes the options, as a reload does. */
  async reload(config: object): Promise<void> {
    const { config: checked } = testContext(plugin, { config, check: AROUND });
    const next = { config: checked, extensions: this.ctx.extensions, entries: this.ctx.entries };
    const apply = await this.ctx.lifecycle.reconfigure?.(next as never, new AbortController().signal);
    apply?.();
  }

  stop(): Promise<void> | void {
    return this.ctx.lifecycle.stop?.(new AbortController().signal);
  }
}

type Answer = Iterable<readonly ModelEvent[]> | AsyncIterable<readonly ModelEvent[]>;

async function* batchesOf(answer: Answer): AsyncGenerator<readonly ModelEvent[]> {
  yield* answer;
}

/** An answer whose usage is known: by default a million input tokens. */
export function usage(counts: Partial<Usage> = { promptTokens: 1_000_000 }, text = ''): readonly (readonly ModelEvent[])[] {
  const said: ModelEvent[] = text === '' ? [] : [{ type: 'text', text }];
  return [
    said,
    [
      { type: 'usage', usage: { ...NO_USAGE, ...counts } },
      { type: 'end', reason: 'stop' },
    ],
  ];
}

export function principal(project: string, tokenId: string, more: Partial<Principal> = {}): Principal {
  return { project, tokenId, token: `name of ${tokenId}`, scopes: ['chat', 'models:read'], ...more };
}
