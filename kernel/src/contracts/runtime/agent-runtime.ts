import { defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { StateChange } from '../../host/plugin/state.js';
import type { Principal } from '../callers/principal.js';
import type { AgentEvent, Failure, TurnError } from '../events/event.js';
import type { Message } from '../messages/message.js';
import type { ToolDeclaration } from '../model/model-connector.js';
import type { SessionId } from '../store/conversation-store.js';
import type { IdempotencyKey } from '../store/idempotency-store.js';
import type { SharedStore } from '../store/shared-store.js';
import type { ToolCall } from '../tools/tool-source.js';
import type { Account } from './account.js';
import type { AgentCards } from './agent-cards.js';
import type { ApprovalDecision, Approvals } from './approvals.js';
import type { Conversations } from './conversations.js';
import type { BusyMode, Target } from './target.js';
import type { TurnRecord } from './turn-record.js';

/**
 * Runs agents. Called by transports, and by agents that are another agent's tool. Discipline:
 * exactly one.
 *
 * 1. A transport identifies the caller and asks `resolve` what the requested name means for that
 *    caller.
 * 2. It starts a turn at that target with `run` and encodes the events.
 * 3. Slow reading slows the turn down. The request's signal, or leaving the iteration early, ends
 *    it.
 *
 * @experimental
 */
export interface AgentRuntime {
  resolve(name: string, principal: Principal): TargetResolution;
  /** The targets that the principal may use: agents first, each in file order. */
  list(principal: Principal): readonly TargetInfo[];
  /**
   * Claims an idempotency key before a turn runs. Never rejects. If the result is a claim, `run`
   * follows with it, or the claim is released: the key stays claimed until then, or until that turn
   * has ended.
   *
   * @param fingerprint equal for equal requests only.
   * @param account in which a stored answer is reserved before it is read (S-71).
   */
  claim(key: IdempotencyKey, fingerprint: string, account: Account): Promise<ClaimResult>;
  /**
   * Runs a turn. Never throws: every failure is the terminal `failed` event, including a turn
   * refused before it began. It refuses, whatever the transport checked:
   *
   * - `forbidden`: a principal without the scope `chat`, or a target that it may not use;
   * - `invalid_request`: a session key that is blank, too long or malformed, no messages, messages
   *   that no model would accept, and new images for a target that takes text only;
   * - `rate_limited`: a principal or project beyond its requests per minute. A turn with an
   *   `account` has been counted already.
   */
  run(request: TurnRequest): TurnEvents;
  /** Session operations other than turns. */
  readonly conversations: Conversations;
  /** Tool calls that wait for a person's approval. Absent if no tool of the runtime needs one. */
  readonly approvals?: Approvals;
  /** What callers may know of agents. Absent if the runtime tells nothing. */
  readonly cards?: AgentCards;
  /** What other servers do that serve the same sessions. Absent if there can be none. */
  readonly otherServers?: OtherServers | undefined;
  /** Whether turns can run now: with an agent, a model and a working store, before the stop. */
  ready(): Promise<boolean>;
  /**
   * Waits until no turn runs, if the server was asked to stop; else it resolves at once. Turns that
   * take longer than the runtime's limit are ended. A plugin that has work to do after its turns,
   * such as storing what they answered, calls it in its own `stop`.
   */
  drain?(): Promise<void>;
  /** Milliseconds that turns have when the server stops. Transports give their replies as long. */
  readonly drainLimit?: number;
  /**
   * Counts a request against the limits per minute of its caller and of the caller's project. For
   * transports that count every request, not turns alone, or that refuse one before they read it.
   * Absent if the runtime has no such limits.
   */
  countRequest?(principal: Principal): RequestCount;
}

/**
 * Turns at other servers, by the ids of their requests (`TurnRequest.id`), and what servers show
 * each other: see `SharedStore.offer` and `read`. All methods reject with a `TurnError`.
 */
interface OtherServers extends Pick<SharedStore, 'offer' | 'read'> {
  /** The session in whose line the turn is, if the principal reaches it. Undefined: in none. */
  find(id: string, principal: Principal): Promise<SessionId | undefined>;
  /** Ends such a turn. Resolves when it has left the line; with false if there was none. */
  cancel(id: string, principal: Principal): Promise<boolean>;
}

/**
 * The events of a turn for one reader. A reader that stops early leaves. The turn ends with its
 * last reader, unless its agent says `onDisconnect: continue` or its request says `resumable`.
 *
 * @experimental
 */
export interface TurnEvents extends AsyncIterable<readonly AgentEvent[]> {
  /**
   * Ends the turn for all its readers. It fails with `turn_cancelled`, unless its answer is being
   * stored: then it ends as the store decides. Resolves when it has ended; its events are the place
   * to see how.
   */
  cancel(): Promise<void>;
  /**
   * Says whether anyone reads what this reader makes of the events. While nobody does, it receives
   * them, and does not count as a reader of the turn.
   */
  setRead(isRead: boolean): void;
  /**
   * What has happened in the turn so far; undefined before it runs, or if the runtime keeps none.
   * It changes as the turn goes on, and is never behind the events that were read.
   */
  readonly record?: TurnRecord | undefined;
}

/** What came of counting a request. @experimental */
export interface RequestCount {
  /** The limit that is closest. Absent if none applies. */
  readonly limit?:
    | {
        readonly requestsPerMinute: number;
        /** How many more requests it allows now. */
        readonly remaining: number;
        /** Milliseconds until it allows all of them again. */
        readonly reset: number;
      }
    | undefined;
  /** Why the request must not be served: `rate_limited`. It then counts nowhere. */
  readonly refused?: TurnError | undefined;
}

/** The extension point of the agent runtime: `agent.runtime`, exactly one. @experimental */
export const AgentRuntimes = defineExtensionPoint<AgentRuntime>('agent.runtime', {
  discipline: 'one',
  shape: {
    resolve: 'function',
    list: 'function',
    claim: 'function',
    run: 'function',
    conversations: 'object',
    'approvals?': 'object',
    'cards?': 'object',
    ready: 'function',
  },
});

/** What a requested name means for a caller. @experimental */
export type TargetResolution =
  | { readonly kind: 'target'; readonly target: Target }
  /** An agent of that name exists, but the principal may not use it. */
  | { readonly kind: 'forbidden' }
  /** Nothing has that name, and there is no default agent. */
  | { readonly kind: 'unknown' };

/** An agent or raw model, as listings show it. @experimental */
export interface TargetInfo {
  readonly name: string;
  readonly kind: 'agent' | 'model';
  readonly description: string | undefined;
}

/**
 * A turn to run, as a transport asks for it. Its conversation is one of four kinds: sent as a
 * whole, continued, kept in a session, or to be summarized.
 *
 * @experimental
 */
export type TurnRequest = RequestedTurn & (WholeConversation | ContinuedConversation | SessionConversation | SummaryRequest);

/** The caller keeps the conversation, and sends it in `messages`. */
interface WholeConversation {
  readonly session?: undefined;
  readonly history?: undefined;
  readonly summarize?: undefined;
  readonly wholeHistory?: undefined;
  readonly commitState?: undefined;
}

/**
 * The transport keeps the conversation. The turn follows the rules of a session: `messages` are the
 * new ones and must answer the open tool calls, and the agent's `history` decides what the model
 * receives.
 */
interface ContinuedConversation {
  /** The conversation before `messages`. */
  readonly history: readonly Message[];
  /**
   * Fail with `context_length_exceeded` if the conversation no longer fits the model, whatever the
   * agent's `history` says.
   */
  readonly wholeHistory?: boolean | undefined;
  readonly session?: undefined;
  readonly summarize?: undefined;
  readonly commitState?: undefined;
}

/** The runtime keeps the conversation. */
interface SessionConversation {
  readonly session: SessionRequest;
  /** As of a conversation that the transport keeps. */
  readonly wholeHistory?: boolean | undefined;
  /**
   * Returns changes of the transport's own state (`ctx.state.changes`) that are stored in the
   * transaction that commits the turn: all or nothing, exactly once. Called with the messages of
   * the answer just before that; the last one is the server's text if tool calls wait for approval.
   * If it throws, the turn fails. Not called for a turn that fails or is cancelled. Such a turn
   * begins without its messages: `onRestart: keep-input` keeps none of a turn that a crash cut,
   * because the transport runs it again.
   */
  readonly commitState?: ((answer: readonly Message[]) => readonly StateChange[]) | undefined;
  readonly history?: undefined;
  readonly summarize?: undefined;
}

/**
 * The answer is a summary of `messages`, by the agent's model. The agent's prompt, tools and
 * parameters have no effect.
 */
interface SummaryRequest {
  readonly summarize: true;
  readonly session?: undefined;
  readonly history?: undefined;
  readonly wholeHistory?: undefined;
  readonly commitState?: undefined;
}

/** What every turn has. */
interface RequestedTurn {
  readonly target: Target;
  readonly principal: Principal;
  /**
   * The memory of the request, in which `messages` and `history` are reserved already. The turn
   * reserves in it what it holds besides. A transport that passes one has counted the request with
   * `countRequest`. Without one, the turn opens its own, and `run` counts it.
   */
  readonly account?: Account | undefined;
  /** The caller's messages. */
  readonly messages: readonly Message[];
  /**
   * Whether the extras in `messages` are those of earlier answers, because the transport has sealed
   * them before its caller kept them. If not, they are left out.
   */
  readonly hasOwnExtras?: boolean | undefined;
  /**
   * Decisions about tool calls of the session that wait for approval. Where the protocol has no
   * form for them, they are lines of the last user message: `approve K7M2QX`.
   */
  readonly approvals?: readonly ApprovalDecision[] | undefined;
  /** Tools that the caller runs itself. An agent with `clientTools: ignore` does not get them. */
  readonly clientTools: readonly ToolDeclaration[];
  /** The caller's sampling parameters by protocol name. The target may ignore some. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Ends the turn after fewer calls of the agent's own tools than the agent allows. */
  readonly maxToolCalls?: number | undefined;
  readonly incremental: boolean;
  readonly requestId: string;
  /** The id of the request that opened the connection, for a turn of a socket. */
  readonly connectionId?: string | undefined;
  /** 24 letters and digits by which its caller knows the turn. Those who watch it see the same. */
  readonly id?: string | undefined;
  /** The end user, as the request names it, for interceptors and model connections. */
  readonly user?: string | undefined;
  /** The key of the transport's entry (`ctx.name`), for interceptors. */
  readonly transport?: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /**
   * Aborts when the caller disconnects: the turn loses this reader. If the reason is a `TurnError`,
   * the turn ends with it for all its readers, for example because the server stops.
   */
  readonly signal: AbortSignal;
  /**
   * Milliseconds that the turn waits for a reader to come back after the last one has left. By
   * default it ends at once.
   */
  readonly resumable?: number | undefined;
  /** Present if the request has an idempotency key. */
  readonly idempotency?: TurnIdempotency | undefined;
  /**
   * The tool call that starts the turn, as its tool received it. The turn runs in the place, the
   * account and the limits of that call's turn, for the same caller, and ends with the call. What
   * happens in it is `nested` in the other turn. The key of a `session` names one that belongs to
   * the session of that turn; if that has none, the turn has none either.
   */
  readonly parent?: ToolCall | undefined;
}

/** The state of an idempotency key. @experimental */
export type ClaimResult =
  /** The key is free: run the turn. */
  | { readonly kind: 'new'; readonly claim: IdempotencyClaim }
  /** The turn has ended. `text` is what its transport recorded. */
  | { readonly kind: 'replay'; readonly text: string }
  /** The turn is running. */
  | { readonly kind: 'running' }
  /** The key was used for another request. */
  | { readonly kind: 'mismatch' }
  /** The process died after tools of the turn had started. How far they got is unknown. */
  | { readonly kind: 'interrupted' }
  /** The store failed. */
  | { readonly kind: 'failed'; readonly failure: Failure };

/** The right to run one turn under a key. @experimental */
export interface IdempotencyClaim {
  readonly key: IdempotencyKey;
  readonly fingerprint: string;
  /** Frees the key, if the turn cannot be run after all. Does nothing after `run`. */
  release(): void;
}

/**
 * The idempotency of a turn: the claimed key, and what records the answer for replays.
 *
 * @experimental
 */
export interface TurnIdempotency {
  readonly claim: IdempotencyClaim;
  readonly recorder: AnswerRecorder;
}

/**
 * Records the answer of a turn for replay. The runtime stores the text with the turn and returns it
 * unchanged.
 *
 * @experimental
 */
export interface AnswerRecorder {
  /** Receives every batch before the readers of the turn do, including the terminal event. */
  add(batch: readonly AgentEvent[]): void;
  /** Returns the recorded answer. Called once, after the terminal event. */
  text(): string;
}

/** The session of a turn, as its request names it. @experimental */
export interface SessionRequest {
  /**
   * Any text of 1 to 512 bytes without control characters (`sessionKeyProblem`), or two such texts
   * joined by a colon. A channel uses `<channel>:<chat id>`.
   */
  readonly key: string;
  /** The user named in the request. */
  readonly user?: string | undefined;
  /** What happens if the session is busy. Defaults to the agent's `onBusy`. */
  readonly busy?: BusyMode | undefined;
  /** Refuses the turn with `session_busy` if the session has another number of turns by then. */
  readonly turns?: number | undefined;
  /** Equal for a retry by the same caller, which joins the running or waiting turn. */
  readonly fingerprint?: string | undefined;
}
