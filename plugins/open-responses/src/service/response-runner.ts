import { type AgentEvent, AgentRuntimes, type Clock, type Extensions, type Logger, type PluginContext } from '@plugboard/kernel';
import {
  type AgentRuntime,
  conversationId,
  type Failure,
  NO_USAGE,
  Transcript,
  TurnError,
  type TurnIdempotency,
} from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { AnswerFold } from '@plugboard/turn-routes';
import type { ResponseEnd } from '../events/outcome.js';
import type { EndedAnswer, EndedResponse } from '../events/replay.js';
import { type EncoderOptions, ResponseEncoder } from '../events/response-encoder.js';
import { BranchingTurn } from '../live/branching-turn.js';
import { LiveResponse, type RunningResponse } from '../live/live-response.js';
import { LiveResponses } from '../live/live-responses.js';
import { conversationName } from '../request/request.js';
import { historyOf, type Plan, type ResponseCaller } from './response-plan.js';
import { StoredResponses } from './stored-responses.js';

/** Milliseconds that a stored response runs on without a reader. */
const RESUME_TIMEOUT = 30_000;

/** The session that a response runs in. */
interface ResponseSession {
  readonly key: string;
  /** The opaque id. */
  readonly conversation: string;
  /** Whether the session exists for this chain of responses, and was not named by a request. */
  readonly isChain: boolean;
  /** Whether it was copied for this response. */
  readonly isCopy: boolean;
  /** The turns of responses that run or wait in it before this one. */
  readonly ahead: number;
  /** Copies it for this response, if another server has continued it by then. */
  readonly branch?: (() => Promise<ResponseSession>) | undefined;
}

/** What `POST /v1/responses/compact` returns. */
export interface CompactedConversation extends Omit<EndedResponse, 'status'> {
  readonly object: 'response.compaction';
}

/** Creates the response of a plan, and keeps what is left of it at its end. */
export class ResponseRunner {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #live: LiveResponses;
  readonly #stored: StoredResponses;
  /** Turns that run or wait in sessions, by the opaque ids of these. */
  readonly #turns = new Map<string, number>();

  constructor(
    @inject(CONTEXT) { extensions, clock, log }: PluginContext,
    @inject(LiveResponses) live: LiveResponses,
    @inject(StoredResponses) stored: StoredResponses,
  ) {
    this.#runtimes = extensions(AgentRuntimes);
    this.#clock = clock;
    this.#log = log;
    this.#live = live;
    this.#stored = stored;
  }

  /** @throws TurnError if the session to continue cannot be reached. */
  async create(plan: Plan, idempotency: TurnIdempotency | undefined): Promise<LiveResponse> {
    const { caller, head, turn, stored } = plan;
    const { target, principal } = turn;
    let session: ResponseSession | undefined;
    try {
      session = await this.#beginIn(plan);
    } catch (error) {
      idempotency?.claim.release();
      throw error;
    }
    // A record of the turn would have the summary as it was before it was sealed.
    if (plan.compaction) idempotency?.claim.release();
    const transcript = caller.connection && !stored ? new Transcript() : undefined;
    const response = new LiveResponse({
      encoder: this.#encoder(plan, {
        extensions: caller.extensions,
        streamId: plan.request.stream_id,
        conversation: conversationName(plan.request) ?? session?.conversation,
      }),
      stored,
      incremental: caller.incremental,
      extensions: caller.extensions,
      account: caller.account,
      ahead: session?.ahead,
      ignored: plan.ignored,
      work: {
        input: plan.input,
        run: (signal) =>
          this.#run(plan, session, signal, idempotency, (branch) => {
            session = branch;
            response.encoder.conversation = branch.conversation;
          }),
        observe: (batch) => transcript?.add(batch),
        store: async (end) => {
          if (!stored || !session || isUntold(end, caller)) return false;
          const document = { turn: end.turn ?? 0, response: end.response, input: plan.input, carried: plan.carried };
          try {
            await this.#stored.put(head.id, document, session, target, principal);
            return true;
          } catch (err) {
            this.#log.warn({ err, response_id: head.id }, 'a response could not be stored');
            return false;
          }
        },
        onEnd: (end) => this.#onEnd(plan, session, response, end, transcript),
      },
      clock: this.#clock,
      log: this.#log,
    });
    if (stored) this.#live.add(response, principal, target.name);
    return response;
  }

  /** Makes the summary of a plan for one, without a response. @throws TurnError */
  async compact(plan: Plan, signal: AbortSignal): Promise<CompactedConversation> {
    const answer = this.fold(plan);
    for await (const batch of this.#run(plan, undefined, signal, undefined, () => {}).events) answer.add(batch);
    const { end } = answer;
    if (!end) throw new TurnError('crashed', 'The summary was not finished.');
    if ('code' in end) throw new TurnError(end.code, end.message, { retryAfter: end.retryAfter });
    const { id, created_at, output, usage } = end.response;
    return { id, object: 'response.compaction', created_at, output, usage };
  }

  /** Folds the events of the turn into the answer that a repeated request receives. */
  fold(plan: Plan): AnswerFold<EndedAnswer> {
    return new ResponseFold(this.#encoder(plan, { extensions: false }));
  }

  /**
   * The session of a response, in which its turn then runs or waits; undefined if it has none.
   * Continuing the newest response of a chain adds a turn to its session, and so does deciding
   * about calls that wait in a session. Continuing an older one, or one whose continuation already
   * runs, copies the session up to it: a separate branch.
   *
   * @throws TurnError
   */
  async #beginIn({ base, head, turn: { target, principal, approvals = [] } }: Plan): Promise<ResponseSession | undefined> {
    const begin = (
      key: string,
      { isChain = true, isCopy = false, branch }: Partial<Pick<ResponseSession, 'isChain' | 'isCopy' | 'branch'>> = {},
    ): ResponseSession => {
      const conversation = conversationId({ project: principal.project, agent: target.name, key });
      const ahead = this.#turns.get(conversation) ?? 0;
      this.#turns.set(conversation, ahead + 1);
      return { key, conversation, isChain, isCopy, ahead, branch };
    };
    switch (base.kind) {
      case 'stateless':
        return undefined;
      case 'session':
        return begin(base.key, { isChain: false });
      case 'chain':
        return begin(head.id);
      case 'stored': {
        const { conversation, turn, isChain } = base.previous;
        const { conversations, otherServers } = this.#runtimes.one();
        const copy = async () => {
          await conversations.fork(conversation, { key: head.id, turns: turn }, principal);
          return begin(head.id, { isCopy: true });
        };
        const { id, turns, status } = await conversations.get(conversation, principal);
        // What waits in a session is decided in it: a copy cannot run its calls.
        if (approvals.length > 0 && turns === turn) return begin(id.key, { isChain });
        if (isChain && turns === turn && status === 'idle' && !this.#turns.has(conversation))
          return begin(id.key, { branch: otherServers && copy });
        return copy();
      }
    }
  }

  #endIn({ conversation }: ResponseSession): void {
    const left = (this.#turns.get(conversation) ?? 1) - 1;
    if (left > 0) this.#turns.set(conversation, left);
    else this.#turns.delete(conversation);
  }

  #encoder(plan: Plan, options: Pick<EncoderOptions, 'extensions' | 'streamId' | 'conversation'>): ResponseEncoder {
    return new ResponseEncoder(plan.head, {
      visibility: plan.turn.target.toolVisibility,
      showsReasoning: plan.showsReasoning,
      seal: plan.seal,
      forms: plan.forms,
      isCompaction: plan.compaction !== undefined,
      isCodex: plan.caller.isCodex,
      now: () => Math.floor(this.#clock.now() / 1000),
      ...options,
    });
  }

  #run(
    plan: Plan,
    session: ResponseSession | undefined,
    signal: AbortSignal,
    idempotency: TurnIdempotency | undefined,
    onBranch: (session: ResponseSession) => void,
  ): RunningResponse {
    const { request, caller, head, base, stored } = plan;
    const runtime = this.#runtimes.one();
    if (request.generate === false) return { events: warmUp(head.id, plan.turn.target.name), turn: undefined };
    if (plan.compaction) {
      const turn = runtime.run({ ...plan.turn, summarize: true, signal });
      return { events: plan.compaction.sealed(turn), turn };
    }
    const common = {
      ...plan.turn,
      id: head.id.slice(head.id.indexOf('_') + 1),
      wholeHistory: request.truncation === 'disabled',
      signal,
      resumable: stored && caller.incremental ? RESUME_TIMEOUT : 0,
      idempotency,
    };
    if (!session) {
      const turn = runtime.run({ ...common, history: historyOf(base) });
      return { events: turn, turn };
    }
    const { key, isChain, branch } = session;
    const fingerprint = isChain ? undefined : caller.fingerprint;
    const own = { key, user: plan.turn.user, busy: caller.busy, fingerprint };
    if (!branch || base.kind !== 'stored') {
      const turn = runtime.run({ ...common, session: own });
      return { events: turn, turn };
    }
    const first = runtime.run({ ...common, session: { ...own, busy: 'reject', turns: base.previous.turn } });
    const turn = new BranchingTurn(first, async () => {
      const copy = await branch();
      this.#endIn(session);
      onBranch(copy);
      const claimed = idempotency && (await this.#claimAgain(idempotency, caller));
      return runtime.run({ ...common, idempotency: claimed, session: { ...own, key: copy.key } });
    });
    return { events: turn, turn };
  }

  /** The turn that was refused has freed its key. @throws TurnError if an equal request has it. */
  async #claimAgain({ claim, recorder }: TurnIdempotency, { account }: ResponseCaller): Promise<TurnIdempotency> {
    const claimed = await this.#runtimes.one().claim(claim.key, claim.fingerprint, account);
    if (claimed.kind === 'new') return { claim: claimed.claim, recorder };
    throw new TurnError('session_busy', 'An equal request was faster; try again in a moment.', { retryAfter: 1 });
  }

  #onEnd(
    { caller, turn, stored, request, base, compaction, carried }: Plan,
    session: ResponseSession | undefined,
    response: LiveResponse,
    end: ResponseEnd,
    transcript: Transcript | undefined,
  ): void {
    if (session) this.#endIn(session);
    this.#live.end(response, caller.incremental);
    const isLost = isUntold(end, caller);
    if (session) this.#tidy(session, { isLost, isKept: stored && !isLost }, caller);
    const { memory } = caller.connection ?? {};
    if (!memory) return;
    if (!end.failure) {
      const said = turn.messages.filter(({ role }) => role !== 'system');
      memory.put(request.stream_id ?? '', {
        id: response.id,
        agent: turn.target.name,
        session: base.kind === 'session' ? base.key : undefined,
        summary: compaction?.summary,
        carried,
        messages:
          stored || session ? undefined : compaction ? [] : [...historyOf(base), ...said, ...(transcript?.messages() ?? [])],
      });
    } else if (end.outcome.status === 'failed' && request.previous_response_id !== undefined) {
      memory.evict(request.previous_response_id);
    }
  }

  /** Deletes a session that has no use without the response: a copy, or a chain without others. */
  #tidy(
    session: ResponseSession,
    { isLost, isKept }: { readonly isLost: boolean; readonly isKept: boolean },
    { principal }: ResponseCaller,
  ): void {
    const { conversation } = session;
    const deleted =
      session.isCopy && isLost
        ? this.#runtimes.one().conversations.delete(conversation, principal)
        : this.#stored.onTurnEnd(conversation, isKept, principal);
    deleted.catch((err) => this.#log.warn({ err, conversation }, 'the session of a refused response could not be deleted'));
  }
}

/** Folds the events of a turn into the response at its end. */
class ResponseFold implements AnswerFold<EndedAnswer> {
  readonly #encoder: ResponseEncoder;

  constructor(encoder: ResponseEncoder) {
    this.#encoder = encoder;
  }

  add(batch: readonly AgentEvent[]): void {
    this.#encoder.write(batch);
  }

  get end(): EndedAnswer | Failure | undefined {
    const { end, connection } = this.#encoder;
    return end && (end.failure ?? { connection, response: JSON.parse(end.response) as EndedResponse });
  }
}

/**
 * Whether the caller was not told the id of a response that did not complete: it receives an error
 * in its place, because the turn was refused or failed before the head of a reply was sent, or it
 * has disconnected before.
 */
function isUntold({ outcome, response, failure }: ResponseEnd, { incremental }: ResponseCaller): boolean {
  if (response === '') return true;
  return !incremental && (outcome.status === 'failed' || outcome.reason === 'shutdown' || failure?.code === 'abandoned');
}

/** A turn without a model call, for `generate: false`: the conversation is prepared. */
async function* warmUp(turnId: string, agent: string): AsyncGenerator<readonly AgentEvent[]> {
  yield [{ type: 'started', turnId, agent }];
  yield [{ type: 'finished', reason: 'stop', usage: NO_USAGE }];
}
