import type { AgentEvent, StateStore } from '@plugboard/kernel';
import {
  type AgentEvents,
  type AgentRuntime,
  type Approvals,
  type ClaimResult,
  type Conversations,
  DEFAULT_PROJECT,
  type FailureCode,
  NO_USAGE,
  type Target,
  type TargetInfo,
  type TargetResolution,
  type TurnEvents,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import { turnEvents } from './turn-events.js';

/** What a turn of a `ScriptedRuntime` does. @experimental */
export interface ScriptedTurn {
  /** The text of the answer. */
  readonly text?: string;
  /** The turn fails with this code. */
  readonly failure?: FailureCode;
  /** Whether tools ran before it failed. */
  readonly toolsRan?: boolean;
  /** The turn waits for this before it answers, unless it is cancelled or its caller left. */
  readonly after?: Promise<unknown>;
}

/**
 * An agent runtime whose turns a test scripts, for plugins that run agents: channels, routes,
 * tools.
 *
 * ```ts
 * const ctx = testContext(plugin, { config: { agent: 'helper' } });
 * const runtime = new ScriptedRuntime({ agents: ['helper'], state: ctx.stateStore });
 * ctx.provide(AgentRuntimes, runtime);
 * runtime.enqueue({ text: 'Hello.' });
 * ```
 *
 * @experimental
 */
export class ScriptedRuntime implements AgentRuntime {
  /** The turns that were run, in order. */
  readonly requests: TurnRequest[] = [];
  readonly #agents: readonly string[];
  readonly #state: StateStore | undefined;
  readonly #script: ScriptedTurn[] = [];

  /** @param options.state receives what turns commit (`commitState`). */
  constructor({ agents, state }: { readonly agents: readonly string[]; readonly state?: StateStore }) {
    this.#agents = agents;
    this.#state = state;
  }

  /** Adds the next turns. A turn without a script answers `ok`. */
  enqueue(...turns: readonly ScriptedTurn[]): void {
    this.#script.push(...turns);
  }

  resolve(name: string): TargetResolution {
    return this.#agents.includes(name) ? { kind: 'target', target: targetOf(name) } : { kind: 'unknown' };
  }

  list(): readonly TargetInfo[] {
    return this.#agents.map((name) => ({ name, kind: 'agent', description: undefined }));
  }

  run(request: TurnRequest): TurnEvents {
    this.requests.push(request);
    const cancelled = new AbortController();
    const turn = this.#script.shift() ?? { text: 'ok' };
    return turnEvents(this.#events(request, turn, AbortSignal.any([cancelled.signal, request.signal])), () => cancelled.abort());
  }

  /** Every key is free. */
  async claim(
    key: { readonly project: string; readonly route: string; readonly key: string },
    fingerprint: string,
  ): Promise<ClaimResult> {
    return { kind: 'new', claim: { key, fingerprint, release: () => undefined } };
  }

  get conversations(): Conversations {
    throw new Error('a ScriptedRuntime has no conversations; test them with startServer');
  }

  get approvals(): Approvals {
    throw new Error('a ScriptedRuntime has no approvals; test them with startServer');
  }

  async ready(): Promise<boolean> {
    return true;
  }

  async *#events(
    request: TurnRequest,
    { text = '', failure, toolsRan = false, after }: ScriptedTurn,
    signal: AbortSignal,
  ): AgentEvents {
    yield [
      { type: 'started', turnId: `turn_${this.requests.length}`, agent: request.target.name },
      { type: 'step', step: 1, connection: 'scripted' },
    ];
    if (after) await Promise.race([after, aborted(signal)]);
    if (signal.aborted) return yield [failed('turn_cancelled', toolsRan)];
    if (failure) return yield [failed(failure, toolsRan)];
    const changes = request.commitState?.([{ role: 'assistant', content: text }]);
    if (changes && (await this.#state?.change(changes)) === false) return yield [failed('session_busy', toolsRan)];
    yield [
      { type: 'text', text },
      { type: 'finished', reason: 'stop', usage: NO_USAGE },
    ];
  }
}

function targetOf(name: string): Target {
  return {
    kind: 'agent',
    name,
    project: DEFAULT_PROJECT,
    clientTools: undefined,
    fingerprint: '0123456789ab',
    input: ['text', 'image'],
    connection: 'scripted',
    onBusy: 'enqueue',
    toolVisibility: 'full',
    onDisconnect: 'cancel',
    forwardsParam: () => true,
    nameAtModel: (entry, tool) => `${entry}__${tool}`,
  };
}

function failed(code: FailureCode, toolsRan: boolean): AgentEvent {
  return { type: 'failed', failure: { code, message: 'The scripted turn failed.', toolsRan } };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
