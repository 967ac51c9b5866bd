import { LongText } from '@plugboard/kernel/contracts';
import type { EventNumbers } from './event-numbers.js';
import type { ItemStatus, OutputItem } from './output-item.js';

/** The differences between the types of items that hold one text. */
export interface TextForm {
  /** The item's constant fields, as JSON: `"type":"reasoning"`. */
  readonly fields: string;
  /** The field that holds the part. */
  readonly list: 'content' | 'summary';
  /** The start of the names of the part's events, and of the text's. */
  readonly partEvents: string;
  readonly textEvents: string;
  /** The field that numbers the parts. */
  readonly index: string;
  /** The field of the text in its last event. */
  readonly field: 'text' | 'refusal';
  /** The fields that follow the text in its events, as JSON. */
  readonly after: string;
  /** The part, as JSON. @param text escaped for JSON. */
  part(text: string): string;
}

/** An item whose one part is written piece by piece. */
export class TextItem implements OutputItem {
  readonly index: number;
  readonly form: TextForm;
  readonly #id: string;
  readonly #numbers: EventNumbers;
  readonly #itemFields: string;
  readonly #delta: (text: string) => string;
  /** The text while it grows; undefined once it is complete. */
  #growing: LongText | undefined = new LongText();
  /** The complete text. All events and the item share this one copy of it. */
  #text = '';
  #status: ItemStatus = 'in_progress';

  constructor(form: TextForm, id: string, index: number, numbers: EventNumbers) {
    this.index = index;
    this.form = form;
    this.#id = id;
    this.#numbers = numbers;
    this.#itemFields = `"output_index":${index},"item_id":"${id}","${form.index}":0`;
    this.#delta = numbers.template(`${form.textEvents}.delta`, `${this.#itemFields},"delta":"`, `"${form.after}`);
  }

  open(out: string[]): void {
    out.push(
      this.#numbers.event('response.output_item.added', `"output_index":${this.index},"item":${this.#item('')}`),
      this.#numbers.event(`${this.form.partEvents}.added`, `${this.#itemFields},"part":${this.form.part('')}`),
    );
  }

  /** @param text escaped for JSON. */
  add(text: string, out: string[]): void {
    this.#growing?.add(text);
    out.push(this.#delta(text));
  }

  close(status: 'completed' | 'incomplete', out: string[]): void {
    this.#status = status;
    const { textEvents, partEvents, field, after, part } = this.form;
    const text = this.#complete();
    out.push(
      this.#numbers.event(`${textEvents}.done`, `${this.#itemFields},"${field}":"${text}"${after}`),
      this.#numbers.event(`${partEvents}.done`, `${this.#itemFields},"part":${part(text)}`),
      this.#numbers.event('response.output_item.done', `"output_index":${this.index},"item":${this.json()}`),
    );
  }

  json(): string {
    return this.#item(this.form.part(this.#growing?.toString() ?? this.#text));
  }

  #complete(): string {
    if (this.#growing) this.#text = this.#growing.toString();
    this.#growing = undefined;
    return this.#text;
  }

  #item(part: string): string {
    return `{"id":"${this.#id}",${this.form.fields},"status":"${this.#status}","${this.form.list}":[${part}]}`;
  }
}

/** A `message` item: what the model says in one step. */
export const MESSAGE: TextForm = {
  fields: '"type":"message","role":"assistant"',
  list: 'content',
  partEvents: 'response.content_part',
  textEvents: 'response.output_text',
  index: 'content_index',
  field: 'text',
  after: ',"logprobs":[]',
  part: (text) => `{"type":"output_text","text":"${text}","annotations":[],"logprobs":[]}`,
};

/** A `message` item that says why the model does not answer. */
export const REFUSAL: TextForm = {
  fields: MESSAGE.fields,
  list: 'content',
  partEvents: MESSAGE.partEvents,
  textEvents: 'response.refusal',
  index: MESSAGE.index,
  field: 'refusal',
  after: '',
  part: (text) => `{"type":"refusal","refusal":"${text}"}`,
};

/** A `reasoning` item: the model's reasoning, as one summary part. */
export const REASONING: TextForm = {
  fields: '"type":"reasoning"',
  list: 'summary',
  partEvents: 'response.reasoning_summary_part',
  textEvents: 'response.reasoning_summary_text',
  index: 'summary_index',
  field: 'text',
  after: '',
  part: (text) => `{"type":"summary_text","text":"${text}"}`,
};
