import { LongText } from '@plugboard/kernel/contracts';
import type { EventNumbers } from './event-numbers.js';

/**
 * An output item while it is being written. Its methods add events as JSON texts, in the order in
 * which they are sent.
 */
export interface OutputItem {
  open(out: string[]): void;
  /** The item as it stands now, as JSON. */
  json(): string;
}

/** Where an item is: its id, and its index in the response's `output`. */
export interface ItemPlace {
  readonly id: string;
  readonly index: number;
}

/** How an item whose text grows is shown. Texts are escaped for JSON. */
export interface GrowingForm {
  /** The start of the names of the events of its text. */
  readonly events: string;
  /** The field of the text in its last event. */
  readonly field: 'text' | 'refusal' | 'arguments' | 'input';
  /** Fields of these events, as JSON: in each, after the text, and before it in the last one. */
  readonly inEach?: string;
  readonly after?: string;
  readonly inLast?: string;
  /** The part that holds the text; undefined if the item does itself. */
  readonly part?: { readonly events: string; json(text: string): string };
  /** The fields of the item but its id and status. @param text undefined before there is a part. */
  fields(text: string | undefined): string;
}

/** An item with one text, which is written piece by piece. */
export class GrowingItem implements OutputItem {
  readonly form: GrowingForm;
  readonly #place: ItemPlace;
  readonly #numbers: EventNumbers;
  readonly #itemFields: string;
  readonly #delta: (text: string) => string;
  /** The text while it grows; undefined once it is complete. */
  #growing: LongText | undefined = new LongText();
  /** The complete text. All events and the item share this one copy of it. */
  #text = '';
  #status: 'in_progress' | 'completed' | 'incomplete' = 'in_progress';

  constructor(form: GrowingForm, place: ItemPlace, numbers: EventNumbers) {
    const { events, inEach = '', after = '' } = form;
    this.form = form;
    this.#place = place;
    this.#numbers = numbers;
    this.#itemFields = `"output_index":${place.index},"item_id":"${place.id}"${inEach}`;
    this.#delta = numbers.template(`${events}.delta`, `${this.#itemFields},"delta":"`, `"${after}`);
  }

  open(out: string[]): void {
    const { part } = this.form;
    this.#write('added', this.#item(part ? undefined : ''), out);
    if (part) out.push(this.#numbers.event(`${part.events}.added`, `${this.#itemFields},"part":${part.json('')}`));
  }

  /** @param text escaped for JSON. */
  add(text: string, out: string[]): void {
    if (text === '') return;
    this.#growing?.add(text);
    out.push(this.#delta(text));
  }

  /** A call that was cut off is never done: no one may run it. */
  close(status: 'completed' | 'incomplete', out: string[]): void {
    const { events, field, part, inLast = '', after = '' } = this.form;
    this.#status = status;
    this.#text = String(this.#growing ?? '');
    this.#growing = undefined;
    if (part || status === 'completed')
      out.push(this.#numbers.event(`${events}.done`, `${this.#itemFields}${inLast},"${field}":"${this.#text}"${after}`));
    if (part) out.push(this.#numbers.event(`${part.events}.done`, `${this.#itemFields},"part":${part.json(this.#text)}`));
    this.#write('done', this.json(), out);
  }

  json(): string {
    return this.#item(this.#growing?.toString() ?? this.#text);
  }

  #item(text: string | undefined): string {
    return `{"id":"${this.#place.id}",${this.form.fields(text)},"status":"${this.#status}"}`;
  }

  #write(event: 'added' | 'done', json: string, out: string[]): void {
    out.push(this.#numbers.event(`response.output_item.${event}`, `"output_index":${this.#place.index},"item":${json}`));
  }
}

/** An item that comes whole. */
export class WholeItem implements OutputItem {
  readonly #json: string;
  readonly #index: number;
  readonly #numbers: EventNumbers;

  /** @param json the item. */
  constructor(json: string, index: number, numbers: EventNumbers) {
    this.#json = json;
    this.#index = index;
    this.#numbers = numbers;
  }

  /** Writes all of it. */
  open(out: string[]): void {
    const fields = `"output_index":${this.#index},"item":${this.#json}`;
    for (const event of ['added', 'done']) out.push(this.#numbers.event(`response.output_item.${event}`, fields));
  }

  json(): string {
    return this.#json;
  }
}
