import type { AgentEvent, Clock } from '@plugboard/kernel';
import {
  addUsage,
  NO_USAGE,
  type TurnApproval,
  type TurnRecord,
  type TurnToolCall,
  type TurnToolResult,
  type Usage,
} from '@plugboard/kernel/contracts';
import { endOf, type TurnEnd } from '../log/batch.js';

/** Model calls and tool calls of a turn that are recorded, of each at most so many. */
const MAX_ENTRIES = 1_000;
/** Characters of reasoning that are kept of a turn. */
const MAX_REASONING = 32 * 1024;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Step = Mutable<TurnRecord['steps'][number]>;
type Call = Mutable<TurnRecord['calls'][number]>;
type Nested = Extract<AgentEvent, { type: 'nested' }>;
type Decision = NonNullable<TurnRecord['decisions']>[number];

/** What arrives of a model's answer. */
type Phase = 'nothing' | 'reasoning' | 'answer';

/**
 * Collects what happens in a turn from its events as they pass, after the interceptors: what these
 * removed is not kept. A token costs a comparison; everything else happens per step and call.
 *
 * A model call begins where the turn had nothing else to do: after `started`, or after the last
 * result. Its retries are part of it.
 */
export class TurnRecorder {
  readonly #clock: Clock;
  readonly #arrivedAt: number;
  readonly #startedAt: number;
  readonly #queued: number;
  readonly #keepsReasoning: boolean;
  readonly #id: string | undefined;
  readonly #steps: Step[] = [];
  readonly #calls: Call[] = [];
  /** What happens in the turns that calls started, by the ids of the calls. */
  #nested: Map<string, TurnRecorder> | undefined;
  /** The model call that answers now. */
  #step: Step | undefined;
  #phase: Phase = 'answer';
  /** Since when it reasons. */
  #thinkingSince = 0;
  #reasoning = '';
  #reasoningLeft = MAX_REASONING;
  /** Length of the reasoning of this step that is left out. */
  #omitted = 0;
  /** Since when the turn waits for a model. */
  #idleSince = 0;
  #duration = 0;
  #end: TurnEnd | undefined;
  #decisions: readonly Decision[] = [];

  /**
   * Made when the turn begins to run.
   * @param arrivedAt on the monotonic clock, in milliseconds.
   * @param keepsReasoning whether callers may see it.
   * @param id by which the caller knows the turn, if it does.
   */
  constructor(arrivedAt: number, clock: Clock, keepsReasoning: boolean, id?: string) {
    this.#id = id;
    this.#clock = clock;
    this.#arrivedAt = arrivedAt;
    this.#keepsReasoning = keepsReasoning;
    this.#queued = this.#now();
    this.#startedAt = Math.floor(clock.now()) - this.#queued;
    this.#idleSince = this.#queued;
  }

  add(events: readonly AgentEvent[]): void {
    for (let i = 0; i < events.length; i++) {
      const event = events[i] as AgentEvent;
      if (event.type === 'text') {
        if (this.#phase !== 'answer') this.#enter('answer');
      } else if (event.type === 'reasoning') {
        if (this.#phase !== 'reasoning') this.#enter('reasoning');
        if (this.#keepsReasoning) this.#reason(event.text);
      } else this.#other(event);
    }
  }

  /** What is kept of the reasoning of a model call so far. @param step from 0. */
  reasoningOf(step: number): string {
    const found = this.#steps[step];
    return found !== undefined && found === this.#step ? this.#reasoning : (found?.reasoning ?? '');
  }

  /** The turn begins with decisions about calls of earlier turns. */
  decide(decisions: readonly Decision[]): void {
    this.#decisions = decisions;
  }

  /** The turn has ended. Only the first call counts. */
  end(end: TurnEnd): void {
    if (this.#end) return;
    this.#closeStep();
    this.#duration = this.#now();
    this.#end = end;
  }

  /** What has happened so far. */
  get record(): TurnRecord {
    const end = this.#end;
    return {
      ...(this.#id !== undefined && { id: this.#id }),
      startedAt: this.#startedAt,
      queued: this.#queued,
      duration: end ? this.#duration : this.#now(),
      ...(end?.type === 'finished' && { usage: end.usage, limit: end.limit }),
      reason: end?.type === 'finished' ? end.reason : end?.type,
      steps: this.#steps,
      calls: this.#calls,
      decisions: this.#decisions.length > 0 ? this.#decisions : undefined,
    };
  }

  /** The record as JSON. */
  get text(): string {
    return JSON.stringify(this.record);
  }

  #other(event: AgentEvent): void {
    switch (event.type) {
      case 'started':
        this.#idleSince = this.#now();
        break;
      case 'step':
        this.#closeStep();
        this.#step = { connection: event.connection, start: this.#idleSince };
        this.#phase = 'nothing';
        if (this.#steps.length < MAX_ENTRIES) this.#steps.push(this.#step);
        break;
      case 'tool-call-delta':
        this.#enter('answer');
        break;
      case 'usage':
        if (this.#step) this.#step.usage = event.usage;
        break;
      case 'tool-call':
        this.#begin(event, event.tool ? 'cut' : 'client');
        break;
      case 'approval':
        this.#ask(event);
        break;
      case 'tool-result':
        this.#result(event);
        break;
      case 'nested':
        this.#nest(event);
        break;
      case 'finished':
      case 'failed':
        this.end(event);
        break;
    }
  }

  /** The first piece of reasoning, or of what follows it. */
  #enter(phase: Phase): void {
    const step = this.#step;
    if (step && phase !== this.#phase) {
      const now = this.#now();
      if (this.#phase === 'nothing') step.firstToken = now;
      if (phase === 'reasoning') this.#thinkingSince = now;
      if (this.#phase === 'reasoning') step.reasoned = (step.reasoned ?? 0) + now - this.#thinkingSince;
    }
    this.#phase = phase;
  }

  #reason(text: string): void {
    const kept = text.length <= this.#reasoningLeft ? text : text.slice(0, this.#reasoningLeft).toWellFormed();
    this.#reasoning += kept;
    this.#reasoningLeft -= kept.length;
    this.#omitted += text.length - kept.length;
  }

  #closeStep(): void {
    const step = this.#step;
    if (!step) return;
    if (this.#phase === 'reasoning') this.#enter('answer');
    step.duration = this.#now() - step.start;
    if (this.#omitted > 0) step.reasoning = `${this.#reasoning}\n… [${this.#omitted} characters left out]`;
    else if (this.#reasoning !== '') step.reasoning = this.#reasoning;
    this.#step = undefined;
    this.#phase = 'answer';
    this.#reasoning = '';
    this.#omitted = 0;
  }

  #begin({ id, name, tool, approval, resumed, arguments: text }: TurnToolCall, state: Call['state']): Call {
    this.#enter('answer');
    this.#closeStep();
    const call: Call = { id, name, tool, step: this.#steps.length, start: this.#now(), state };
    if (approval !== undefined) call.approval = approval;
    if (approval !== undefined || resumed) call.arguments = text;
    if (this.#calls.length < MAX_ENTRIES) this.#calls.push(call);
    return call;
  }

  #ask({ id, call: asked }: TurnApproval): void {
    const postponed = this.#calls.find((call) => call.id === asked.id);
    const call = postponed ?? this.#begin(asked, 'waiting');
    // What a person sees: other arguments, or a call of the turn that this one started.
    if (postponed) Object.assign(postponed, { tool: asked.tool, arguments: asked.arguments });
    call.state = 'waiting';
    call.approval = id;
  }

  #result({ id, isError, effect, milliseconds }: TurnToolResult): void {
    this.#idleSince = this.#now();
    const call = this.#calls.find((one) => one.id === id);
    if (!call) return;
    call.state = effect ?? (isError ? 'failed' : 'completed');
    call.duration = milliseconds;
  }

  #nest({ call: id, agent, events }: Nested): void {
    const call = this.#calls.find((one) => one.id === id);
    if (!call) return;
    this.#nested ??= new Map();
    const nested = this.#nested.get(id) ?? new TurnRecorder(this.#arrivedAt, this.#clock, false);
    this.#nested.set(id, nested);
    nested.add(events);
    const { usage = NO_USAGE } = call.nested ?? {};
    const end = endOf(events);
    const total = end?.type === 'finished' ? end.usage : usageIn(events, usage);
    call.nested = { agent, usage: total, steps: nested.#steps, calls: nested.#calls };
  }

  /** Milliseconds since the arrival of the request. */
  #now(): number {
    return Math.round(this.#clock.monotonic() - this.#arrivedAt);
  }
}

/** Adds the tokens of model calls, of those below too. */
function usageIn(events: readonly AgentEvent[], before: Usage): Usage {
  let sum = before;
  for (const event of events) {
    if (event.type === 'usage') sum = addUsage(sum, event.usage);
    else if (event.type === 'nested') sum = usageIn(event.events, sum);
  }
  return sum;
}

/** Adds the reasoning to the events of a transcript, which has none. */
export function withReasoning(events: readonly AgentEvent[], recorder: TurnRecorder | undefined): readonly AgentEvent[] {
  let step = 0;
  return events.flatMap((event): readonly AgentEvent[] => {
    const text = event.type === 'step' ? recorder?.reasoningOf(step++) : '';
    return text ? [event, { type: 'reasoning', text }] : [event];
  });
}
