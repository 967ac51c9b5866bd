import type { AgentEvent } from '@plugboard/kernel';
import {
  addUsage,
  type Target,
  type TurnApproval,
  type TurnEvents,
  type TurnFailed,
  type TurnFinished,
  type TurnRecord,
  type TurnToolCall,
  type TurnToolCallDelta,
  type Usage,
} from '@plugboard/kernel/contracts';
import { ExtrasCollector, type ExtrasSeal } from '@plugboard/turn-routes';
import type { CallForm } from '../tools/call-form.js';
import { ApprovalRequestItem } from './approval-request-item.js';
import { CustomCallItem } from './custom-call-item.js';
import { EventNumbers } from './event-numbers.js';
import { FunctionCallItem } from './function-call-item.js';
import { escaped, escapedText } from './json-text.js';
import { McpCallItem } from './mcp-call-item.js';
import { type Outcome, outcomeOfFailure, outcomeOfFinish, type ResponseEnd } from './outcome.js';
import type { OutputItem } from './output-item.js';
import { type ResponseHead, ResponseObject, type ResponseStatus } from './response-object.js';
import { COMPACTION, SEALED_REASONING, SealedItem } from './sealed-item.js';
import { MESSAGE, REASONING, REFUSAL, type TextForm, TextItem } from './text-item.js';
import { TurnProgress } from './turn-progress.js';

export interface EncoderOptions {
  /** What callers may see of the agent's own tool calls. */
  readonly visibility: Target['toolVisibility'];
  /** Whether the model's reasoning is shown. */
  readonly showsReasoning: boolean;
  /** Seals what the client keeps of the model's reasoning; undefined if it keeps nothing. */
  readonly seal?: ExtrasSeal | undefined;
  /** Whether `svc:` events are sent. */
  readonly extensions: boolean;
  /** How calls of the caller's tools are shown, by the names of the tools at the model. */
  readonly forms?: ReadonlyMap<string, CallForm> | undefined;
  /** Whether its one text is a sealed summary. */
  readonly isCompaction?: boolean | undefined;
  /** The `stream_id` of the request. */
  readonly streamId?: string | undefined;
  /** The session, as `svc:session.state` names it; undefined if it is not shown. */
  readonly conversation?: string | undefined;
  /** Whether the client is Codex CLI, which knows few error codes. */
  readonly isCodex?: boolean | undefined;
  /** Unix time, seconds. */
  now(): number;
}

/**
 * Writes the events of one turn as the events of one response (Open Responses, streaming).
 *
 * 1. `begin` says that the response exists, as running or as waiting.
 * 2. `write` turns each batch of the turn's events into events of the protocol. The first batch
 *    ends the wait. The last one ends the items that are still open, and the response: `end` is set
 *    then, and nothing follows.
 *
 * Every event is returned as one JSON text. A token costs one concatenation: the constant parts of
 * its event are built once per item, and the text goes through as the model server escaped it.
 */
export class ResponseEncoder {
  readonly id: string;
  readonly #object: ResponseObject;
  readonly #numbers: EventNumbers;
  readonly #options: EncoderOptions;
  /** What follows the prefix in the ids of the response and its items. */
  readonly #suffix: string;
  #items: OutputItem[] = [];
  /** Server-run calls without a result, by the ids that the model gave them. */
  readonly #calls = new Map<string, McpCallItem>();
  /** Calls of client tools that the model is still writing, by their ids. */
  readonly #openCalls = new Map<string, FunctionCallItem | CustomCallItem>();
  #open: TextItem | undefined;
  /** Whether a call waits for approval. */
  #asks = false;
  #isQueued = false;
  /** The number of the turn in its session. */
  #turn: number | undefined;
  #end: ResponseEnd | undefined;
  #usage: Usage | undefined;
  #connection: string | undefined;
  readonly #progress = new TurnProgress();
  readonly #extras: ExtrasCollector;
  /** The ids of the items of calls, by the ids of the calls. */
  readonly #callItems = new Map<string, string>();

  constructor(head: ResponseHead, options: EncoderOptions) {
    this.id = head.id;
    this.#suffix = head.id.slice(head.id.indexOf('_') + 1);
    this.#object = new ResponseObject(head);
    this.#numbers = new EventNumbers(options.streamId);
    this.#options = options;
    this.#extras = new ExtrasCollector(options.seal);
  }

  /** The model connection that answered first; undefined while none has. */
  get connection(): string | undefined {
    return this.#connection;
  }

  /** Whether `svc:` events are sent. */
  get extensions(): boolean {
    return this.#options.extensions;
  }

  /** How the response ended; undefined until the last batch was written. */
  get end(): ResponseEnd | undefined {
    return this.#end;
  }

  begin(status: 'queued' | 'in_progress'): string[] {
    this.#isQueued = status === 'queued';
    return [this.#state('response.created', status), this.#state(`response.${status}`, status)];
  }

  /** `svc:queue.position`. @param position 1 for the next one to run. */
  queuePosition(position: number): string {
    return this.#numbers.event('svc:queue.position', `"position":${position}`);
  }

  /** `svc:response.input`. @param items of the request. */
  input(items: readonly object[]): string {
    return this.#numbers.event('svc:response.input', `"input":${JSON.stringify(items)}`);
  }

  /** The next event is one that another encoder of the same response has written. */
  skip(): void {
    this.#numbers.skip();
  }

  /** `svc:ignored_params`. @param names what the request has and has no effect. */
  ignoredParams(names: readonly string[]): string {
    return this.#numbers.event('svc:ignored_params', `"params":${JSON.stringify(names)}`);
  }

  /**
   * @param options.merges whether the text of the batch becomes one event, for a reader that falls
   *   behind.
   * @param options.turn whose progress is shown.
   */
  write(
    batch: readonly AgentEvent[],
    { merges = false, turn }: { readonly merges?: boolean; readonly turn?: Pick<TurnEvents, 'record'> } = {},
  ): string[] {
    const out: string[] = [];
    const [first] = batch;
    const last = batch.at(-1);
    if (first?.type === 'started') this.#start(first.turn, out);
    this.#writeAll(batch, merges, out);
    const record = this.#options.extensions ? turn?.record : undefined;
    if (record) this.#showProgress(batch, record, out);
    if (last?.type === 'finished' || last?.type === 'failed') this.#finish(last, out);
    return out;
  }

  /** Drops the items. Nothing can be written any more. */
  release(): void {
    this.#items = [];
    this.#callItems.clear();
  }

  /** The response in its current state, as JSON. */
  snapshot(): string {
    if (this.#end) return this.#end.response;
    return this.#json(this.#isQueued ? 'queued' : 'in_progress', { status: 'completed', usage: this.#usage });
  }

  /** The turn runs. @param turn its number in its session, from 1. */
  #start(turn: number | undefined, out: string[]): void {
    if (this.#isQueued) out.push(this.#state('response.in_progress', 'in_progress'));
    this.#isQueued = false;
    this.#turn = turn;
    this.#showSession('running', out);
  }

  #writeAll(batch: readonly AgentEvent[], merges: boolean, out: string[]): void {
    /** Text to merge. Thousands of concatenations would take several times the size of a join. */
    let pieces: string[] = [];
    const flush = () => {
      if (pieces.length > 0) this.#say(pieces.join(''), out);
      pieces = [];
    };
    for (const event of batch) {
      if (event.type === 'approval') this.#asks = true;
      if (event.type === 'text' && event.isNotice && this.#asks) continue; // items say the same
      if (event.type === 'text' && !event.isRefusal) {
        if (merges) pieces.push(escapedText(event));
        else this.#say(escapedText(event), out);
        continue;
      }
      flush();
      this.#write(event, out);
    }
    flush();
  }

  /** Ends the items that are still open, and the response. One that was cut has cut items. */
  #finish(last: TurnFinished | TurnFailed, out: string[]): void {
    const outcome =
      last.type === 'finished' ? outcomeOfFinish(last) : outcomeOfFailure(last.failure, this.#usage, this.#options.isCodex);
    const { status, reason } = outcome;
    const isCut = status === 'failed' || (status === 'incomplete' && reason !== 'max_steps' && reason !== 'max_tool_calls');
    this.#closeText(out, isCut ? 'incomplete' : 'completed');
    for (const call of [...this.#openCalls.values(), ...this.#calls.values()]) call.cut(out);
    this.#openCalls.clear();
    this.#calls.clear();
    this.#showSession('idle', out);
    const response = this.#json(status, outcome, status === 'completed' ? this.#options.now() : null);
    out.push(this.#numbers.event(`response.${status}`, `"response":${response}`));
    const isFinished = last.type === 'finished';
    this.#end = { outcome, response, failure: isFinished ? undefined : last.failure, turn: isFinished ? this.#turn : undefined };
  }

  /** `svc:session.state`. */
  #showSession(state: 'running' | 'idle', out: string[]): void {
    const { extensions, conversation } = this.#options;
    if (!extensions || conversation === undefined || this.#turn === undefined) return;
    const fields = `"conversation":${JSON.stringify(conversation)},"state":"${state}","turn":${this.#turn}`;
    out.push(this.#numbers.event('svc:session.state', fields));
  }

  /** `svc:turn.progress`, if the batch has changed what is known of the turn. */
  #showProgress(batch: readonly AgentEvent[], record: TurnRecord, out: string[]): void {
    const fields = this.#progress.next(batch, this.#turn, record, {
      visibility: this.#options.visibility,
      itemOf: ({ id, approval, state }) => (state === 'waiting' ? approval : this.#callItems.get(id)) ?? null,
      resultOf: () => undefined,
    });
    if (fields !== undefined) out.push(this.#numbers.event('svc:turn.progress', fields));
  }

  #state(type: string, status: 'queued' | 'in_progress'): string {
    return this.#numbers.event(type, `"response":${this.#object.json(status, '')}`);
  }

  #json(status: ResponseStatus, outcome: Outcome, completedAt: number | null = null): string {
    // Concatenated strings share the texts of the items; `join` would copy them.
    const output = this.#items.reduce((json, item) => (json === '' ? item.json() : `${json},${item.json()}`), '');
    return this.#object.json(status, output, outcome, completedAt);
  }

  #write(event: AgentEvent, out: string[]): void {
    switch (event.type) {
      case 'step':
        this.#extras.add(event);
        this.#connection ??= event.connection;
        this.#closeText(out);
        break;
      case 'text':
        this.#add(REFUSAL, 'msg', escaped(event.text), out);
        break;
      case 'reasoning':
        if (this.#options.showsReasoning) this.#add(REASONING, 'rs', escaped(event.text), out);
        break;
      case 'extra':
        this.#extras.add(event);
        break;
      case 'tool-call':
        this.#extras.add(event);
        this.#closeText(out);
        if (event.tool) this.#serverCall(event, event.tool, out);
        else this.#clientCall(event, out);
        break;
      case 'tool-call-delta':
        this.#openCall(event, out).add(event.arguments, out);
        break;
      case 'tool-progress':
        if (this.#options.extensions) this.#calls.get(event.id)?.progress(event, out);
        break;
      case 'tool-result':
        this.#calls.get(event.id)?.finish(event, out);
        this.#calls.delete(event.id);
        break;
      case 'approval':
        this.#closeText(out);
        this.#approval(event, out);
        break;
      case 'usage':
        this.#usage = this.#usage ? addUsage(this.#usage, event.usage) : event.usage;
        break;
      case 'finished':
        if (event.reason === 'tool_calls') this.#sealReasoning(out);
        break;
    }
  }

  #say(text: string, out: string[]): void {
    if (this.#options.isCompaction) this.#sealed('cmp', COMPACTION, text, out);
    else this.#add(MESSAGE, 'msg', text, out);
  }

  /** What the model needs of its reasoning, after the calls that the client runs. */
  #sealReasoning(out: string[]): void {
    const { sealed } = this.#extras;
    if (sealed === undefined) return;
    this.#closeText(out);
    this.#sealed('rs', SEALED_REASONING, sealed, out);
  }

  #sealed(prefix: string, fields: string, content: string, out: string[]): void {
    const index = this.#items.length;
    const item = new SealedItem(this.#itemId(prefix, index), index, fields, content);
    this.#items.push(item);
    item.write(this.#numbers, out);
  }

  #add(form: TextForm, prefix: string, text: string, out: string[]): void {
    if (text === '') return;
    this.#text(form, prefix, out).add(text, out);
  }

  #clientCall(call: TurnToolCall, out: string[]): void {
    const item = this.#openCall(call, out);
    item.finish(call.arguments, out);
    this.#openCalls.delete(call.id);
  }

  /** The item of a client's call, or a new one. */
  #openCall({ id, name }: TurnToolCall | TurnToolCallDelta, out: string[]): FunctionCallItem | CustomCallItem {
    const open = this.#openCalls.get(id);
    if (open) return open;
    this.#closeText(out);
    const index = this.#items.length;
    const form = this.#options.forms?.get(name) ?? { type: 'function', name, namespace: undefined };
    const itemId = this.#itemId(form.type === 'custom' ? 'ctc' : 'fc', index);
    const item =
      form.type === 'custom'
        ? new CustomCallItem(itemId, index, { id, form }, this.#numbers)
        : new FunctionCallItem(itemId, index, { id, form }, this.#numbers);
    this.#items.push(item);
    this.#openCalls.set(id, item);
    this.#callItems.set(id, itemId);
    item.open(out);
    return item;
  }

  #serverCall(call: TurnToolCall, tool: NonNullable<TurnToolCall['tool']>, out: string[]): void {
    const { visibility } = this.#options;
    if (visibility === 'none') return;
    const index = this.#items.length;
    const shown = { tool, arguments: call.arguments, approval: call.approval, visibility };
    const id = this.#itemId('mcp', index);
    const item = new McpCallItem(id, index, shown, this.#numbers);
    this.#items.push(item);
    this.#calls.set(call.id, item);
    this.#callItems.set(call.id, id);
    item.open(out);
  }

  #approval(event: TurnApproval, out: string[]): void {
    this.#calls.get(event.call.id)?.cut(out); // an interceptor postponed it
    this.#calls.delete(event.call.id);
    const item = new ApprovalRequestItem(this.#items.length, event, this.#options.visibility);
    this.#items.push(item);
    item.write(this.#numbers, out);
  }

  /** The open item of this form, or a new one. */
  #text(form: TextForm, prefix: string, out: string[]): TextItem {
    if (this.#open?.form === form) return this.#open;
    this.#closeText(out);
    const index = this.#items.length;
    const item = new TextItem(form, this.#itemId(prefix, index), index, this.#numbers);
    this.#items.push(item);
    this.#open = item;
    item.open(out);
    return item;
  }

  #closeText(out: string[], status: 'completed' | 'incomplete' = 'completed'): void {
    this.#open?.close(status, out);
    this.#open = undefined;
  }

  /** Says which response an item belongs to, so that a reference to the item can be followed. */
  #itemId(prefix: string, index: number): string {
    return `${prefix}_${this.#suffix}_${index}`;
  }
}
