import { LongText } from '@plugboard/kernel/contracts';
import type { CallForm } from '../tools/call-form.js';
import { CustomInput } from '../tools/custom-input.js';
import type { EventNumbers } from './event-numbers.js';
import { callFields } from './function-call-item.js';
import { escaped } from './json-text.js';
import type { ItemStatus, OutputItem } from './output-item.js';

/**
 * A `custom_tool_call` item: a call of a tool that takes free text, and that the caller runs. Its
 * input grows while the model writes it.
 */
export class CustomCallItem implements OutputItem {
  readonly index: number;
  readonly #id: string;
  readonly #fields: string;
  readonly #numbers: EventNumbers;
  readonly #itemFields: string;
  readonly #delta: (text: string) => string;
  /** Reads the input from the arguments that the model writes. */
  readonly #reader = new CustomInput();
  /** The input so far, escaped. */
  readonly #input = new LongText();
  /** Characters of the arguments so far. */
  #written = 0;
  #status: ItemStatus = 'in_progress';

  constructor(id: string, index: number, call: { readonly id: string; readonly form: CallForm }, numbers: EventNumbers) {
    this.index = index;
    this.#id = id;
    this.#fields = callFields(call.id, call.form);
    this.#numbers = numbers;
    this.#itemFields = `"output_index":${index},"item_id":"${id}"`;
    this.#delta = numbers.template('response.custom_tool_call_input.delta', `${this.#itemFields},"delta":"`, '"');
  }

  /** Characters of the arguments so far. */
  get written(): number {
    return this.#written;
  }

  open(out: string[]): void {
    out.push(this.#numbers.event('response.output_item.added', `"output_index":${this.index},"item":${this.json()}`));
  }

  /** @param piece of the arguments. */
  add(piece: string, out: string[]): void {
    this.#written += piece.length;
    this.#say(this.#reader.add(piece), out);
  }

  /** The call is complete. @param args all of its arguments. */
  finish(args: string, out: string[]): void {
    this.add(args.slice(this.#written), out);
    this.#say(this.#reader.end(), out);
    out.push(this.#numbers.event('response.custom_tool_call_input.done', `${this.#itemFields},"input":"${this.#input}"`));
    this.#close('completed', out);
  }

  /** The turn ended before the call was complete. */
  cut(out: string[]): void {
    this.#close('incomplete', out);
  }

  json(): string {
    return `{"id":"${this.#id}","type":"custom_tool_call","status":"${this.#status}",${this.#fields},"input":"${this.#input}"}`;
  }

  #say(text: string, out: string[]): void {
    if (text === '') return;
    const json = escaped(text);
    this.#input.add(json);
    out.push(this.#delta(json));
  }

  #close(status: 'completed' | 'incomplete', out: string[]): void {
    this.#status = status;
    out.push(this.#numbers.event('response.output_item.done', `"output_index":${this.index},"item":${this.json()}`));
  }
}
