import type { AgentEvent } from '@plugboard/kernel';
import {
  addUsage,
  type Target,
  type TurnApproval,
  type TurnRecord,
  type TurnToolCall,
  type TurnToolCallDelta,
  type Usage,
} from '@plugboard/kernel/contracts';
import { ExtrasCollector, type ExtrasSeal, type TurnLogFields } from '@plugboard/turn-routes';
import type { CallForm } from '../tools/call-form.js';
import { ApprovalRequestItem } from './approval-request-item.js';
import { CustomCallItem } from './custom-call-item.js';
import { EventNumbers } from './event-numbers.js';
import { FunctionCallItem } from './function-call-item.js';
import { escaped, escapedText } from './json-text.js';
import { McpCallItem } from './mcp-call-item.js';
import type { Outcome } from './outcome.js';
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
  /** Collects the fields of the access log. */
  readonly logFields?: TurnLogFields | undefined;
}

/**
 * Writes the events of one turn as the events of one response (Open Responses, streaming).
 *
 * 1. `begin` says that the response exists, as running or as waiting; `start` says that the wait is
 *    over.
 * 2. `write` turns each batch of the turn's events into events of the protocol. Of the
 *    turn's terminal event it takes only that the client is to run tools.
 * 3. `close` ends the items that are still open, `terminal` writes the one terminal event. Nothing
 *    follows.
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

  /** Tokens of the model calls so far; undefined while no model server has reported any. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** The model connection that answered first; undefined while none has. */
  get connection(): string | undefined {
    return this.#connection;
  }

  /** Whether `svc:` events are sent. */
  get extensions(): boolean {
    return this.#options.extensions;
  }

  begin(status: 'queued' | 'in_progress'): string[] {
    return [this.#state('response.created', status), this.#state(`response.${status}`, status)];
  }

  /** The response runs, after it waited for other turns of its session. */
  start(): string {
    return this.#state('response.in_progress', 'in_progress');
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

  /** `svc:session.state`. @param turn the number of the turn in its session, from 1. */
  sessionState(conversation: string, state: 'queued' | 'running' | 'idle', turn: number): string {
    return this.#numbers.event(
      'svc:session.state',
      `"conversation":${JSON.stringify(conversation)},"state":"${state}","turn":${turn}`,
    );
  }

  /**
   * `svc:turn.progress`, after a batch was written: what has changed in the turn.
   * @param turn its number in its session, from 1
   * @returns undefined if nothing has.
   */
  progress(batch: readonly AgentEvent[], turn: number | undefined, record: TurnRecord): string | undefined {
    const fields = this.#progress.next(batch, turn, record, {
      visibility: this.#options.visibility,
      itemOf: ({ id, approval, state }) => (state === 'waiting' ? approval : this.#callItems.get(id)) ?? null,
      resultOf: () => undefined,
    });
    return fields === undefined ? undefined : this.#numbers.event('svc:turn.progress', fields);
  }

  /**
   * @param merges whether the text of one batch becomes one event, for a reader that falls behind.
   */
  write(batch: readonly AgentEvent[], merges = false): string[] {
    const out: string[] = [];
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
    return out;
  }

  /** Ends the items that are still open. A response that was cut has cut items. */
  close({ status, reason }: Outcome): string[] {
    const out: string[] = [];
    const isCut = status === 'failed' || (status === 'incomplete' && reason !== 'max_steps' && reason !== 'max_tool_calls');
    this.#closeText(out, isCut ? 'incomplete' : 'completed');
    for (const call of [...this.#openCalls.values(), ...this.#calls.values()]) call.cut(out);
    this.#openCalls.clear();
    this.#calls.clear();
    return out;
  }

  /** The response as it stands, as JSON. */
  response(outcome: Outcome, completedAt: number): string {
    return this.#json(outcome.status, outcome, outcome.status === 'completed' ? completedAt : null);
  }

  /** @param response what `response` returned. */
  terminal({ status }: Outcome, response: string): string {
    return this.#numbers.event(`response.${status}`, `"response":${response}`);
  }

  /** Drops the items. Nothing can be written any more. */
  release(): void {
    this.#items = [];
    this.#callItems.clear();
  }

  /** The response while it is not over, as JSON. */
  snapshot(status: 'queued' | 'in_progress'): string {
    return this.#json(status, { status: 'completed', usage: this.#usage });
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
        this.#options.logFields?.step();
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
        this.#options.logFields?.toolCall();
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
        this.#options.logFields?.usage(event.usage);
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
