import { defineExtensionPoint } from '../host/plugin/extension-point.js';
import type { Conversations } from './conversations.js';
import type { AgentEvent, AgentEvents, Failure } from './event.js';
import type { IdempotencyKey } from './idempotency-store.js';
import type { Message } from './message.js';
import type { ToolDeclaration } from './model-connector.js';
import type { Principal } from './principal.js';
import type { BusyMode, Target } from './target.js';

/**
 * What transports call, and agents that are another agent's tool. Discipline: exactly one; the kernel bundles it.
 *
 * 1. A transport finds out who calls, and asks `resolve` what the requested name means for them.
 * 2. It `run`s a turn at what came back, and encodes the events for its caller.
 * 3. The turn goes on whether or not its events are read fast; its signal, or leaving the iteration early, ends it.
 */
export interface AgentRuntime {
  resolve(name: string, principal: Principal): TargetResolution;
  /** What the principal may name, agents first, each in file order. */
  list(principal: Principal): readonly TargetInfo[];
  /**
   * Asks for the right to run the one turn of a request that its client may repeat. Never throws. Where it gives a claim, `run` must follow
   * with it: until that turn has ended, nobody else gets the key.
   *
   * @param fingerprint equal for the same request, and for no other.
   */
  claim(key: IdempotencyKey, fingerprint: string): Promise<ClaimResult>;
  /**
   * Runs a turn. Never throws: what goes wrong is the terminal `failed` event, also when the turn was refused before it began.
   */
  run(request: TurnRequest): AgentEvents;
  /** What callers may do with their sessions besides. */
  readonly conversations: Conversations;
  /** Whether a turn could be run now: there is an agent and a model, the store works, and the server is not stopping. */
  ready(): Promise<boolean>;
}

export const AgentRuntimes = defineExtensionPoint<AgentRuntime>('agent.runtime', { discipline: 'one' });

export type TargetResolution =
  | { readonly kind: 'target'; readonly target: Target }
  /** An agent of that name exists, out of the principal's reach. */
  | { readonly kind: 'forbidden' }
  /** Nothing of that name, and no default agent. */
  | { readonly kind: 'unknown' };

export interface TargetInfo {
  readonly name: string;
  readonly kind: 'agent' | 'model';
  readonly description: string | undefined;
}

export interface TurnRequest {
  readonly target: Target;
  readonly principal: Principal;
  /** The caller's messages, checked: the whole conversation where it is stateless. */
  readonly messages: readonly Message[];
  /** The session that the turn belongs to; absent where the caller keeps the conversation. */
  readonly session?: SessionRequest | undefined;
  /** Tools that the caller runs itself; passed to the model unless the agent says `clientTools: ignore`. */
  readonly clientTools: readonly ToolDeclaration[];
  /** The caller's sampling parameters by their names on the wire; those that the target does not honour may be among them. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Ends the turn after fewer tool calls than the agent allows. */
  readonly maxToolCalls?: number | undefined;
  /** Fail with `context_length_exceeded` if the session no longer fits the model, whatever the agent's `history` says. */
  readonly wholeHistory?: boolean | undefined;
  readonly incremental: boolean;
  readonly requestId: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
  /** For a request that its client may repeat. */
  readonly idempotency?: TurnIdempotency | undefined;
}

/** What became of the same request before. */
export type ClaimResult =
  /** Nothing that would count: the turn is to be run. */
  | { readonly kind: 'new'; readonly claim: IdempotencyClaim }
  /** It has ended, and this is what its transport wrote down. */
  | { readonly kind: 'replay'; readonly text: string }
  /** It runs now. */
  | { readonly kind: 'running' }
  /** The key was used for another request. */
  | { readonly kind: 'mismatch' }
  /** Its tools had begun to run when its process died: nobody knows how far they came. */
  | { readonly kind: 'interrupted' }
  /** The store could not tell. */
  | { readonly kind: 'failed'; readonly failure: Failure };

/** The right to run one turn under a key. */
export interface IdempotencyClaim {
  readonly key: IdempotencyKey;
  readonly fingerprint: string;
}

export interface TurnIdempotency {
  readonly claim: IdempotencyClaim;
  readonly recorder: AnswerRecorder;
}

/** Writes down what a turn answers, so that the same can be answered again. The runtime keeps it with the turn, and hands it back as it is. */
export interface AnswerRecorder {
  /** Told of all that readers of the turn are told, its end included, and before them. */
  add(batch: readonly AgentEvent[]): void;
  /** The answer. Asked for once, after the terminal event. */
  text(): string;
}

export interface SessionRequest {
  readonly key: string;
  /** Who the caller says is talking. */
  readonly user?: string | undefined;
  /** What is to happen where the session is busy; as the agent says where it is absent. */
  readonly busy?: BusyMode | undefined;
  /** Equal for a retry of the same request by the same caller: it joins the turn that runs or waits instead of being another one. */
  readonly fingerprint?: string | undefined;
}
