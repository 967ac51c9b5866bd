import type { AgentEvent } from '@plugboard/kernel';
import type { AgentRuntime, Failure, Target, TurnIdempotency, TurnRequest } from '@plugboard/kernel/contracts';
import type { HttpError, HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import type { ClaimProblem } from './claim-problems.js';
import type { NamedSession } from './session-request.js';
import type { TurnWriter } from './turn-stream.js';

/**
 * A protocol whose requests run turns: what `TurnRoute` does not know by itself.
 *
 * 1. `read` checks a request, and converts it to a turn and the form of its answer; or to a turn
 *    that knows how to run.
 * 2. The form folds the events of the turn into one answer, or writes them as a stream.
 * 3. `errorOf` and `claimError` are the errors of the protocol for what the runtime refuses.
 */
export interface Dialect extends Pick<HttpRoute, 'path' | 'tokenHeader'> {
  readonly formatError: NonNullable<HttpRoute['formatError']>;
  /** The error for an invalid field or header of a request. @param why a clause. */
  invalid(param: string, why: string): HttpError;
  /**
   * Checks a request. Called before its idempotency key is claimed.
   *
   * @throws HttpError for a request that cannot be served. TurnErrors are converted.
   */
  read(request: HttpRequest, runtime: AgentRuntime): DialectTurn | Promise<DialectTurn | ReadyTurn>;
  /**
   * The error for a failed turn, or for a request that the runtime refused.
   *
   * @param stateful whether the turn belongs to a session: repeating it could repeat an effect.
   */
  errorOf(failure: Failure, stateful: boolean): HttpError;
  /** The error for a request with an idempotency key that is neither run nor replayed. */
  claimError(problem: ClaimProblem): HttpError;
}

/** What a request asks for. */
export interface DialectTurn {
  readonly turn: Pick<TurnRequest, 'target' | 'messages' | 'clientTools' | 'params' | 'user' | 'metadata' | 'hasOwnExtras'>;
  readonly session: NamedSession | undefined;
  readonly answer: AnswerForm;
}

/** A turn that knows how to run. A dialect whose answers outlive the request makes it itself. */
export interface ReadyTurn {
  readonly target: Target;
  /** The key of the session that the request names. */
  readonly sessionKey: string | undefined;
  readonly answer: ReplayForm;
  /** Runs the turn, and answers the request. Called once. @throws HttpError @throws TurnError */
  reply(idempotency: TurnIdempotency | undefined): Promise<HttpReply>;
}

/** The result of a turn in the words of a protocol. Is stored as JSON for replays. */
export interface FoldedAnswer {
  /** The model connection of the last step. */
  readonly connection?: string | undefined;
}

/** Builds the answer of a turn from its events. */
export interface AnswerFold<Answer extends FoldedAnswer = FoldedAnswer> {
  add(batch: readonly AgentEvent[]): void;
  /** The answer or the failure; undefined until the turn has ended. */
  readonly end: Answer | Failure | undefined;
}

/**
 * The form in which a request wants its answer, where the answer is known as a whole.
 *
 * `Head` and `Answer` are what a protocol stores of an answer that may be replayed, as JSON: the
 * fields at its beginning, and the result of its fold.
 */
export interface ReplayForm<Head extends object = object, Answer extends FoldedAnswer = FoldedAnswer> {
  readonly head: Head;
  /** The headers of every reply with an answer. */
  readonly headers: Readonly<Record<string, string>>;
  /** Set if the request asks for a stream. */
  readonly stream: ReplayStream<Head, Answer> | undefined;
  /** The error for a failed turn. The default is the dialect's. */
  errorOf?(failure: Failure): HttpError;
  /** Begins an answer: of a request for a stream, one with all that the stream would show. */
  fold(): AnswerFold<Answer>;
  /** The body of a whole answer, perhaps of an earlier request. */
  bodyOf(head: Head, answer: Answer): object;
}

/** How an answer that is known as a whole is streamed. */
interface ReplayStream<Head extends object = object, Answer extends FoldedAnswer = FoldedAnswer> {
  readonly headers: Readonly<Record<string, string>>;
  /** The frames of the answer. */
  replay(head: Head, answer: Answer): AsyncIterable<string>;
}

/** The form in which a request wants its answer. */
export interface AnswerForm<Head extends object = object, Answer extends FoldedAnswer = FoldedAnswer>
  extends ReplayForm<Head, Answer> {
  readonly stream: StreamForm<Head, Answer> | undefined;
}

/** How an answer is streamed. */
export interface StreamForm<Head extends object = object, Answer extends FoldedAnswer = FoldedAnswer>
  extends ReplayStream<Head, Answer> {
  /** Milliseconds of silence after which the writer's comment is sent. */
  readonly keepAliveEvery: number;
  /** Whether the writer writes anything for the event. */
  isVisible(event: AgentEvent): boolean;
  writer(): TurnWriter;
}
