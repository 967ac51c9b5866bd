import { LongText } from '../messages/long-text.js';
import type { AssistantMessage, Extra, Message } from '../messages/message.js';
import { toolImagesMessage } from '../tools/tool-images.js';
import type { AgentEvent, TurnText, TurnToolCall, TurnToolResult } from './event.js';

/**
 * Folds the events of a turn into messages: for each step the model's text and calls, then the tool
 * results, in the order of the calls. Results before the first step, of calls of an earlier turn
 * that were approved or resumed, come first. Text after the results is a message of its own. Text
 * that arrives escaped stays escaped until the message is needed.
 *
 * @experimental
 */
export class Transcript {
  readonly #messages: Message[] = [];
  #stepOpen = false;
  #text = '';
  /** Text after `#text`, escaped as in a JSON string. */
  #json: LongText | undefined;
  #refusal = '';
  #calls: TurnToolCall[] = [];
  /** Ids of the calls before the first step. */
  readonly #earlier: string[] = [];
  #results: TurnToolResult[] = [];
  #extra: Extra | undefined;
  /** Steps, calls and results in their order, with the text before the calls of a step. */
  readonly #past: AgentEvent[] = [];
  /** Length of the open step's text that is in `#past`, and of its refusal. */
  #pastText = 0;
  #pastRefusal = 0;

  add(events: readonly AgentEvent[]): void {
    for (const event of events) {
      if (event.type === 'text') this.#say(event);
      else if (event.type === 'tool-call') this.#call(event, event);
      else if (event.type === 'approval') this.#call(event.call, event);
      else if (event.type === 'tool-result') this.#result(event);
      else if (event.type === 'extra') this.#attach(event);
      else if (event.type === 'step') {
        this.#openStep();
        this.#past.push(event);
      }
    }
  }

  /** Returns all messages so far. */
  messages(): readonly Message[] {
    this.#closeStep();
    return this.#messages;
  }

  /**
   * What was added so far, in fewer events: the text of a step is one. Reasoning, progress, usage
   * and calls that are not complete are not among them.
   */
  events(): readonly AgentEvent[] {
    this.#addPast();
    return [...this.#past];
  }

  /** Adds the text that `#past` lacks, then the event. */
  #addPast(event?: AgentEvent): void {
    const text = this.#said().slice(this.#pastText);
    const refusal = this.#refusal.slice(this.#pastRefusal);
    if (text !== '') this.#past.push({ type: 'text', text });
    if (refusal !== '') this.#past.push({ type: 'text', text: refusal, isRefusal: true });
    this.#pastText += text.length;
    this.#pastRefusal += refusal.length;
    if (event) this.#past.push(event);
  }

  /** A call that was approved or is resumed is part of a step of an earlier turn. */
  #call(call: TurnToolCall, event: AgentEvent): void {
    this.#addPast(event);
    if (!this.#stepOpen) {
      if (call.approval !== undefined || call.resumed) this.#earlier.push(call.id);
    } else if (!this.#calls.some(({ id }) => id === call.id)) this.#calls.push(call);
  }

  #result(result: TurnToolResult): void {
    this.#addPast(result);
    if (this.#stepOpen || this.#earlier.includes(result.id)) this.#results.push(result);
  }

  #attach(event: AgentEvent & { readonly type: 'extra' }): void {
    this.#addPast(event);
    this.#extra = event.extra;
  }

  #say(event: TurnText): void {
    if (event.isNotice) {
      this.#addPast(event);
      return;
    }
    if (this.#results.length > 0 || !this.#stepOpen) this.#openStep();
    if (event.isRefusal) this.#refusal += event.text;
    else if (event.json === undefined) this.#text = this.#said() + event.text;
    else {
      this.#json ??= new LongText();
      this.#json.add(event.json);
    }
  }

  /** Returns all text of the step so far. */
  #said(): string {
    if (this.#json) this.#text += JSON.parse(`"${this.#json}"`);
    this.#json = undefined;
    return this.#text;
  }

  #openStep(): void {
    this.#closeStep();
    this.#stepOpen = true;
  }

  #closeStep(): void {
    this.#addPast();
    // A step without text becomes an empty answer: two user messages in a row are not valid
    // everywhere.
    if (this.#stepOpen) {
      this.#messages.push({ ...saying(this.#said(), this.#refusal, this.#calls), ...withExtra(this.#extra) });
    }
    if (this.#stepOpen || this.#results.length > 0) {
      const order = this.#stepOpen ? this.#calls.map(({ id }) => id) : [...this.#earlier];
      if (this.#results.length > 1) this.#results.sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
      const images = this.#results.flatMap((result) => result.images);
      // While client calls are open, no user message may stand between a call and its result.
      const canShow = !this.#stepOpen || this.#calls.length === this.#results.length;
      for (const { id, content, images } of this.#results)
        this.#messages.push({ role: 'tool', tool_call_id: id, content: canShow ? content : withNote(content, images.length) });
      if (canShow && images.length > 0) this.#messages.push(toolImagesMessage(images));
    }
    this.#stepOpen = false;
    this.#text = '';
    this.#json = undefined;
    this.#refusal = '';
    this.#pastText = 0;
    this.#pastRefusal = 0;
    this.#calls = [];
    this.#results = [];
    this.#extra = undefined;
  }
}

function saying(text: string, refusal: string, calls: readonly TurnToolCall[]): AssistantMessage {
  if (calls.length === 0 && refusal === '') return { role: 'assistant', content: text };
  const message = { role: 'assistant', content: text === '' ? null : text, ...(refusal !== '' && { refusal }) } as const;
  if (calls.length === 0) return message;
  return {
    ...message,
    tool_calls: calls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
      ...withExtra(call.extra),
    })),
  };
}

function withExtra(extra: Extra | undefined): { readonly extra?: Extra } {
  return extra === undefined ? {} : { extra };
}

function withNote(content: string, images: number): string {
  return images === 0 ? content : `${content}\n[${images} images omitted: other tool results are still pending]`.trimStart();
}
