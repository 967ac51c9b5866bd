import { LongText } from '@plugboard/kernel/contracts';
import type { CallForm } from '../tools/call-form.js';
import type { EventNumbers } from './event-numbers.js';
import { escaped } from './json-text.js';
import type { ItemStatus, OutputItem } from './output-item.js';

/**
 * A `function_call` item: a call of a tool that the caller runs. Its arguments grow while the model
 * writes them. A call that the model did not complete is `incomplete`, and its arguments are never
 * done.
 */
export class FunctionCallItem implements OutputItem {
  readonly index: number;
  readonly #id: string;
  readonly #fields: string;
  readonly #name: string;
  readonly #numbers: EventNumbers;
  readonly #itemFields: string;
  readonly #delta: (text: string) => string;
  /** The arguments while they grow, escaped. */
  #growing: LongText | undefined = new LongText();
  /** The complete arguments, escaped. */
  #arguments = '';
  /** Characters of the arguments so far. */
  #written = 0;
  #status: ItemStatus = 'in_progress';

  constructor(id: string, index: number, call: { readonly id: string; readonly form: CallForm }, numbers: EventNumbers) {
    this.index = index;
    this.#id = id;
    this.#fields = callFields(call.id, call.form);
    this.#name = JSON.stringify(call.form.name);
    this.#numbers = numbers;
    this.#itemFields = `"output_index":${index},"item_id":"${id}"`;
    this.#delta = numbers.template('response.function_call_arguments.delta', `${this.#itemFields},"delta":"`, '"');
  }

  open(out: string[]): void {
    out.push(this.#numbers.event('response.output_item.added', `"output_index":${this.index},"item":${this.json()}`));
  }

  /** @param piece of the arguments. */
  add(piece: string, out: string[]): void {
    if (piece === '') return;
    this.#written += piece.length;
    const text = escaped(piece);
    this.#growing?.add(text);
    out.push(this.#delta(text));
  }

  /** The call is complete. @param args all of its arguments. */
  finish(args: string, out: string[]): void {
    this.add(args.slice(this.#written), out);
    this.#arguments = this.#text;
    this.#growing = undefined;
    const fields = `${this.#itemFields},"name":${this.#name},"arguments":"${this.#arguments}"`;
    out.push(this.#numbers.event('response.function_call_arguments.done', fields));
    this.#close('completed', out);
  }

  /** The turn ended before the call was complete. */
  cut(out: string[]): void {
    this.#close('incomplete', out);
  }

  json(): string {
    return `{"id":"${this.#id}","type":"function_call","status":"${this.#status}",${this.#fields},"arguments":"${this.#text}"}`;
  }

  get #text(): string {
    return this.#growing?.toString() ?? this.#arguments;
  }

  #close(status: 'completed' | 'incomplete', out: string[]): void {
    this.#status = status;
    out.push(this.#numbers.event('response.output_item.done', `"output_index":${this.index},"item":${this.json()}`));
  }
}

/** The fields that say which tool a call is for, as JSON. */
export function callFields(id: string, { name, namespace }: CallForm): string {
  const place = namespace === undefined ? '' : `,"namespace":${JSON.stringify(namespace)}`;
  return `"call_id":${JSON.stringify(id)},"name":${JSON.stringify(name)}${place}`;
}
