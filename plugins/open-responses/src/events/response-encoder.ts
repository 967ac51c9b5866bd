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
import { ExtrasCollector, type ExtrasSeal, escaped } from '@plugboard/turn-routes';
import type { CallForm } from '../tools/tool-name.js';
import { ClientCall } from './client-call.js';
import { EventNumbers } from './event-numbers.js';
import { McpCallItem } from './mcp-call-item.js';
import { BETWEEN_STEPS, type Outcome, outcomeOfFailure, outcomeOfFinish, type ResponseEnd } from './outcome.js';
import { type GrowingForm, GrowingItem, type ItemPlace, type OutputItem, WholeItem } from './output-item.js';
import { type ResponseHead, ResponseObject, type ResponseStatus } from './response-object.js';
import { MESSAGE, REASONING, REFUSAL } from './text-forms.js';
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
  /** The opaque id or the name of its session. May change until its turn begins. */
  conversation: string | undefined;
  readonly #object: ResponseObject;
  readonly #numbers: EventNumbers;
  readonly #options: EncoderOptions;
  /** What follows the prefix in the ids of the response and its items. */
  readonly #suffix: string;
  #items: OutputItem[] = [];
  /** Server-run calls without a result, by the ids that the model gave them. */
  readonly #calls = new Map<string, McpCallItem>();
  /** Calls of client tools that the model is still writing, by their ids. */
  readonly #openCalls = new Map<string, ClientCall>();
  #openText: GrowingItem | undefined;
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
    this.conversation = options.conversation;
    this.#extras = new ExtrasCollector(options.seal);
  }

  /** The model connection that answered first; undefined while none has. */
  get connection(): string | undefined {
    return this.#connection;
  }

  /** How the response ended; undefined until the last batch was written. */
  get end(): ResponseEnd | undefined {
    return this.#end;
  }

  /**
   * @param known.ahead the turns before it, if it waits.
   * @param known.ignored what the request has and has no effect.
   */
  begin(
    status: 'queued' | 'in_progress',
    { ahead, ignored = [] }: { readonly ahead?: number | undefined; readonly ignored?: readonly string[] } = {},
  ): string[] {
    this.#isQueued = status === 'queued';
    const out = [this.#state('response.created', status), this.#state(`response.${status}`, status)];
    if (!this.#options.extensions) return out;
    if (this.#isQueued && ahead !== undefined) out.push(this.#numbers.event('svc:queue.position', `"position":${ahead}`));
    if (ignored.length > 0) out.push(this.#numbers.event('svc:ignored_params', `"params":${JSON.stringify(ignored)}`));
    return out;
  }

  /**
   * `svc:response.input`, which all encoders of the same response share.
   *
   * @param items of the request.
   * @param hold returns the event that another one has rendered, or renders it.
   */
  input(items: () => readonly object[], hold: (render: () => string) => string): string {
    let isOwn = false;
    const event = hold(() => {
      isOwn = true;
      return this.#numbers.event('svc:response.input', `"input":${JSON.stringify(items())}`);
    });
    if (!isOwn) this.#numbers.skip();
    return event;
  }

  /**
   * The text of a batch that arrived together is one event.
   *
   * @param turn whose progress is shown.
   */
  write(batch: readonly AgentEvent[], turn?: Pick<TurnEvents, 'record'>): string[] {
    const out: string[] = [];
    const [first] = batch;
    const last = batch.at(-1);
    if (first?.type === 'started') this.#start(first.turn, out);
    this.#writeAll(batch, out);
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

  #writeAll(batch: readonly AgentEvent[], out: string[]): void {
    /** Thousands of concatenations would take several times the size of a join. */
    let pieces: string[] = [];
    const flush = () => {
      if (pieces.length > 0) this.#say(pieces.join(''), out);
      pieces = [];
    };
    for (const event of batch) {
      if (event.type === 'text' && !event.isRefusal) {
        // Items say the same as a notice that asks for approval.
        if (!event.isNotice || !this.#asks) pieces.push(event.json ?? escaped(event.text));
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
    const isCut = status === 'failed' || (status === 'incomplete' && !BETWEEN_STEPS.has(reason));
    this.#closeText(out, isCut ? 'incomplete' : 'completed');
    for (const { item } of this.#openCalls.values()) item.close('incomplete', out);
    for (const call of this.#calls.values()) call.cut(out);
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
    const { extensions } = this.#options;
    const { conversation } = this;
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
      case 'nested':
        if (this.#options.extensions) this.#calls.get(event.call)?.nested(event, out);
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
    if (this.#options.isCompaction) this.#sealed('cmp', '"type":"compaction"', text, out);
    else this.#add(MESSAGE, 'msg', text, out);
  }

  /** What the model needs of its reasoning, after the calls that the client runs. */
  #sealReasoning(out: string[]): void {
    const { sealed } = this.#extras;
    if (sealed === undefined) return;
    this.#closeText(out);
    this.#sealed('rs', '"type":"reasoning","status":"completed","summary":[]', sealed, out);
  }

  /** An item with what this server has sealed. */
  #sealed(prefix: string, fields: string, content: string, out: string[]): void {
    const { id, index } = this.#place(prefix);
    this.#open(new WholeItem(`{"id":"${id}",${fields},"encrypted_content":"${content}"}`, index, this.#numbers), out);
  }

  /** Adds text to the open item of this form, or to a new one. */
  #add(form: GrowingForm, prefix: string, text: string, out: string[]): void {
    if (text === '') return;
    if (this.#openText?.form !== form) {
      this.#closeText(out);
      this.#openText = new GrowingItem(form, this.#place(prefix), this.#numbers);
      this.#open(this.#openText, out);
    }
    this.#openText.add(text, out);
  }

  #clientCall(call: TurnToolCall, out: string[]): void {
    this.#openCall(call, out).finish(call.arguments, out);
    this.#openCalls.delete(call.id);
  }

  /** A client's call that the model writes, or a new one. */
  #openCall({ id, name }: TurnToolCall | TurnToolCallDelta, out: string[]): ClientCall {
    const open = this.#openCalls.get(id);
    if (open) return open;
    this.#closeText(out);
    const form = this.#options.forms?.get(name) ?? { type: 'function', name, namespace: undefined };
    const place = this.#place(form.type === 'custom' ? 'ctc' : 'fc');
    const call = new ClientCall(id, form, place, this.#numbers);
    this.#openCalls.set(id, call);
    this.#callItems.set(id, place.id);
    this.#open(call.item, out);
    return call;
  }

  #serverCall(call: TurnToolCall, tool: NonNullable<TurnToolCall['tool']>, out: string[]): void {
    const { visibility } = this.#options;
    if (visibility === 'none') return;
    const place = this.#place('mcp');
    const shown = { tool, arguments: call.arguments, approval: call.approval, visibility };
    const item = new McpCallItem(place, shown, this.#numbers);
    this.#calls.set(call.id, item);
    this.#callItems.set(call.id, place.id);
    this.#open(item, out);
  }

  /**
   * A call waits for a person: an item `mcp_approval_response` in a later request decides. The
   * visibility `names` hides the arguments, `none` also what is called.
   */
  #approval({ id, call }: TurnApproval, out: string[]): void {
    this.#asks = true;
    this.#calls.get(call.id)?.cut(out); // an interceptor postponed it
    this.#calls.delete(call.id);
    const { visibility } = this.#options;
    const { entry = '', name = '' } = (visibility !== 'none' && call.tool) || {};
    const json = JSON.stringify({
      id,
      type: 'mcp_approval_request',
      server_label: entry,
      name,
      arguments: visibility === 'full' ? call.arguments : '',
    });
    this.#open(new WholeItem(json, this.#items.length, this.#numbers), out);
  }

  #closeText(out: string[], status: 'completed' | 'incomplete' = 'completed'): void {
    this.#openText?.close(status, out);
    this.#openText = undefined;
  }

  #open(item: OutputItem, out: string[]): void {
    this.#items.push(item);
    item.open(out);
  }

  /**
   * The next item. Its id says which response it belongs to, so that a reference to the item can be
   * followed.
   */
  #place(prefix: string): ItemPlace {
    const index = this.#items.length;
    return { id: `${prefix}_${this.#suffix}_${index}`, index };
  }
}
