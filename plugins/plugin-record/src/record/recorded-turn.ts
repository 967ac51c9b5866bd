import type { AgentEvent, Clock, InterceptedCall, ModelEvent, Turn } from '@plugboard/kernel';
import { callerId, type ModelCall, Transcript, TurnError, type TurnRequest, type Usage } from '@plugboard/kernel/contracts';
import { type Recording, type ToolLine, type TurnLine, VERSION } from '../format/recording.js';
import { sameStart } from '../format/write-recording.js';
import { RecordedAttempt } from './recorded-attempt.js';
import { sizeOfEvent, sizeOfMessages, sizeOfOutput } from './size.js';

/** What became of a call that reached its tool. */
type Ran = Pick<ToolLine, 'output' | 'failed' | 'isPostponed'>;

/** A request for a turn, and when it arrived. */
export interface Arrival {
  readonly request: TurnRequest;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The same time on the monotonic clock. */
  readonly started: number;
}

/** Bytes that are reserved at a time. */
const RESERVED = 8192;

/** Collects what happens in one turn. Requests are kept as they are, until the turn has ended. */
export class RecordedTurn {
  readonly request: TurnRequest;
  readonly #arrival: Arrival;
  /** The agent's model connections. */
  connections: readonly string[] = [];
  readonly #clock: Clock;
  readonly #reserve: (bytes: number) => boolean;
  #reserved = 0;
  #used = 0;
  #isDropped = false;
  #turn: Turn | undefined;
  #lead: Transcript | undefined = new Transcript();
  #leading: TurnLine['lead'];
  readonly #attempts: RecordedAttempt[] = [];
  #sent: readonly unknown[] = [];
  /** By the ids of the calls, in their order. */
  readonly #tools = new Map<string, ToolLine>();
  #step = 0;
  #answer = '';
  #limit: string | undefined;

  /** @param reserve returns false if there is no memory for so many bytes: it is dropped then. */
  constructor(arrival: Arrival, clock: Clock, reserve: (bytes: number) => boolean) {
    this.request = arrival.request;
    this.#arrival = arrival;
    this.#clock = clock;
    this.#reserve = reserve;
  }

  /** Bytes that were reserved. */
  get bytes(): number {
    return this.#reserved;
  }

  /** The turn has reached the interceptors. */
  begin(turn: Turn): void {
    this.#turn = turn;
    this.#grow(sizeOfMessages(turn.messages));
  }

  add(batch: readonly AgentEvent[]): void {
    if (this.#isDropped) return;
    for (const event of batch) this.#add(event);
  }

  attempt(call: ModelCall): RecordedAttempt {
    const { messages } = call.request;
    this.#grow(sizeOfMessages(messages, sameStart(this.#sent, messages)));
    this.#sent = messages;
    const attempt = new RecordedAttempt(call, this.#clock.monotonic());
    this.#attempts.push(attempt);
    return attempt;
  }

  answered(attempt: RecordedAttempt, batch: readonly ModelEvent[]): void {
    if (this.#isDropped) return;
    for (const event of batch) {
      attempt.add(event);
      this.#grow(sizeOfEvent(event));
    }
  }

  /** The call as the model made it; undefined if it is one of an earlier turn. */
  lineOf(id: string): ToolLine | undefined {
    return this.#tools.get(id);
  }

  /**
   * A call has reached its tool, or an interceptor inside of this one. Of one whose answer was lost
   * and that was made again, the last result is kept.
   */
  ran({ id, input }: InterceptedCall, ran: Ran): void {
    const line = this.#tools.get(id);
    if (!line) return;
    const { output: _, failed: __, ...made } = line;
    this.#tools.set(id, { ...made, input, ...ran });
    if (ran.output !== undefined) this.#grow(sizeOfOutput(ran.output));
  }

  /**
   * The whole recording; undefined if the turn ended before it reached the interceptors.
   *
   * @param status the finish reason, or the failure's code.
   */
  end(status: string, usage: Usage | undefined): Recording | undefined {
    const turn = this.#turn;
    if (!turn) return undefined;
    this.#endLead();
    const now = this.#clock.monotonic();
    const milliseconds = Math.round(now - this.#arrival.started);
    return {
      turn: this.#turnLine(turn),
      attempts: this.#attempts.map((attempt) => attempt.attempt(now)),
      tools: [...this.#tools.values()],
      end: { type: 'end', status, limit: this.#limit, answer: this.#answer, usage, milliseconds },
    };
  }

  #grow(bytes: number): void {
    this.#used += bytes;
    const missing = this.#used - this.#reserved;
    if (missing <= 0 || this.#isDropped) return;
    const step = Math.ceil(missing / RESERVED) * RESERVED;
    if (this.#reserve(step)) this.#reserved += step;
    else this.#isDropped = true;
  }

  #add(event: AgentEvent): void {
    if (event.type === 'step') this.#beginStep(event.step);
    this.#lead?.add([event]);
    if (event.type === 'text' && !event.isNotice) this.#answer += event.text;
    else if (event.type === 'tool-call') this.#call(event, event.tool ? 'cut' : 'client');
    else if (event.type === 'approval') this.#call(event.call, 'waits');
    else if (event.type === 'nested') this.#ask(event);
    else if (event.type === 'tool-result') this.#result(event);
    else if (event.type === 'finished') this.#limit = event.limit;
  }

  #beginStep(step: number): void {
    this.#step = step;
    this.#answer = '';
    this.#endLead();
  }

  /**
   * Results before the first step are those of approved calls. A turn that is cancelled may have no
   * step.
   */
  #endLead(): void {
    if (!this.#lead) return;
    const lead = this.#lead.messages();
    if (lead.length > 0) this.#leading = [...lead];
    this.#lead = undefined;
  }

  #call({ id, name, arguments: written }: Extract<AgentEvent, { type: 'tool-call' }>, state: ToolLine['state']): void {
    const known = this.#tools.get(id);
    this.#tools.set(id, { type: 'tool', step: this.#step, id, name, arguments: written, ...known, state });
  }

  /** The call has started a turn. */
  #ask({ call, agent }: Extract<AgentEvent, { type: 'nested' }>): void {
    const line = this.#tools.get(call);
    if (line) this.#tools.set(call, { ...line, agent });
  }

  #result({ id, content, isError, effect, milliseconds }: Extract<AgentEvent, { type: 'tool-result' }>): void {
    const known = this.#tools.get(id);
    if (!known) return;
    // What the server says of a lost answer is the result.
    const line: ToolLine = effect === 'unknown' ? { ...known, failed: undefined } : known;
    // A tool that ran out of time has a result, although it has not returned.
    const isLate = line.input !== undefined && line.output === undefined && line.failed === undefined;
    const output = isLate ? { content: [{ type: 'text', text: content } as const], isError } : line.output;
    this.#tools.set(id, { ...line, state: line.input === undefined ? 'answered' : 'ran', output, milliseconds });
  }

  #turnLine(turn: Turn): TurnLine {
    const { id, requestId, agent, principal, user, transport, metadata, incremental, system, messages, params } = turn;
    const { project, token, subject } = principal;
    const { params: asked, clientTools, messages: sent, maxToolCalls, summarize, parent } = this.request;
    return {
      type: 'turn',
      version: VERSION,
      id,
      requestId,
      at: this.#arrival.at,
      agent,
      parent: parent && { turn: parent.turnId, call: parent.id },
      inSession: turn.session !== undefined,
      caller: { project, name: token, subject, isIdentified: callerId(principal) !== undefined },
      user,
      transport,
      metadata,
      incremental,
      prompt: system ?? null,
      messages,
      lead: this.#leading,
      params,
      request: {
        params: asked,
        clientTools,
        system: sent.filter(({ role }) => role === 'system'),
        maxToolCalls,
        summarize,
      },
      connections: this.connections,
    };
  }
}

/** What a recording keeps of the error of a tool. */
export function failureOf(error: unknown): Ran {
  if (error instanceof Error && error.name === 'Postponed') return { isPostponed: true };
  const message = error instanceof Error ? error.message || error.name : String(error);
  return { failed: { message, isRefusal: error instanceof TurnError } };
}
