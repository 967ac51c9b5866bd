import type { Message, Principal } from '@plugboard/kernel';
import type { Account, BusyMode, Failure, Target, TurnIdempotency, TurnRequest } from '@plugboard/kernel/contracts';
import type { ProtocolError } from '@plugboard/openai-protocol';
import type { AnswerFold, ExtrasSeal } from '@plugboard/turn-routes';
import type { EndedAnswer } from '../events/replay.js';
import type { ResponseHead } from '../events/response-object.js';
import type { LiveResponse } from '../live/live-response.js';
import type { InputItem, ResponseRequest } from '../request/request.js';
import type { CallForm } from '../tools/tool-name.js';
import type { Carried } from './carried.js';
import type { Compaction } from './compaction.js';
import type { ConnectionMemory } from './connection-memory.js';
import type { LocatedResponse } from './stored-responses.js';

/** The caller of a response or of a summary, and what it may take. */
export interface InputCaller {
  readonly principal: Principal;
  /** The memory of the request, in which its body is reserved. */
  readonly account: Account;
  /** The limit of a body. What its references name counts against it too. */
  readonly inputLimit: { readonly bytes: number; readonly setting: string };
}

/** The caller of a response, and how the response is asked for. */
export interface ResponseCaller extends InputCaller {
  readonly requestId: string;
  /** The id of the request that opened the socket, if it came on one. */
  readonly connectionId?: string | undefined;
  /** The key of the transport's entry. */
  readonly transport: string;
  /** The agent of requests that name none. */
  readonly defaultModel?: string | undefined;
  /** What happens if the session is busy; undefined for the agent's own `onBusy`. */
  readonly busy?: BusyMode | undefined;
  /**
   * Equal for a retry of the same request by the same caller, which then joins the turn. Only
   * requests that name a session are joined.
   */
  readonly fingerprint?: string | undefined;
  /**
   * Whether the answer is read as it is written. The client may come back for the events of a
   * stored response then.
   */
  readonly incremental: boolean;
  /** Whether the caller receives `svc:` events. */
  readonly extensions: boolean;
  /** Whether the client is Codex CLI: see `isCodex`. */
  readonly isCodex?: boolean;
  /** The connection that the response is created on. */
  readonly connection?: {
    readonly memory: ConnectionMemory;
    /** Whether requests that name nothing to continue continue the last one of their stream. */
    readonly isConversation: boolean;
  };
}

/**
 * Whether the client is Codex CLI, which repeats a request whose response failed with a code that
 * it does not know (CL-8).
 *
 * @param headers of the request, or of the upgrade.
 */
export function isCodex(headers: Readonly<Record<string, string | readonly string[] | undefined>>): boolean {
  return /^codex/i.test(String(headers['user-agent'] ?? ''));
}

/** A checked request. Nothing has been run or stored. */
export interface PlannedResponse {
  readonly id: string;
  readonly target: Target;
  /** The key of the session that the request named; undefined if it named none. */
  readonly sessionKey: string | undefined;
  /** Fields, tools and items that were accepted and have no effect. */
  readonly ignored: readonly string[];
  /** Folds the events of the turn into the answer that a repeated request receives. */
  fold(): AnswerFold<EndedAnswer>;
  /** Creates the response. Called once. @throws TurnError */
  create(idempotency?: TurnIdempotency): Promise<LiveResponse>;
  /** Converts a failure of the turn to the error for the caller, in terms of the request. */
  errorOf(failure: Failure): ProtocolError;
}

/** What a response continues. */
export type Base =
  /** A conversation that the server does not keep. */
  | { readonly kind: 'stateless'; readonly history: readonly Message[] }
  /** A new session, for this chain of responses. It begins with `history`. */
  | { readonly kind: 'chain'; readonly history: readonly Message[] }
  /** The session of a stored response, or a copy of it. */
  | { readonly kind: 'stored'; readonly previous: LocatedResponse }
  /** The session that the request named. */
  | { readonly kind: 'session'; readonly key: string };

/** The conversation that a response without a session continues. */
export function historyOf(base: Base): readonly Message[] {
  return base.kind === 'stateless' ? base.history : [];
}

/** Everything that is known of a response before it runs. */
export interface Plan {
  readonly request: ResponseRequest;
  readonly caller: ResponseCaller;
  readonly head: ResponseHead;
  readonly base: Base;
  readonly turn: Omit<
    TurnRequest,
    'signal' | 'idempotency' | 'session' | 'history' | 'summarize' | 'wholeHistory' | 'commitState'
  >;
  /** The items of the request. */
  readonly input: readonly InputItem[];
  readonly stored: boolean;
  readonly showsReasoning: boolean;
  readonly seal: ExtrasSeal | undefined;
  readonly ignored: readonly string[];
  readonly forms: ReadonlyMap<string, CallForm>;
  /** For the responses that continue this one. */
  readonly carried: Carried;
  /** Present if the response is a summary of the conversation. */
  readonly compaction: Compaction | undefined;
  readonly errorOf: (failure: Failure) => ProtocolError;
}
