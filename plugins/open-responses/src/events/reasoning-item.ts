import type { EventNumbers } from './event-numbers.js';
import type { ItemStatus, OutputItem } from './output-item.js';

/** A `reasoning` item. The model's reasoning is shown as one summary part. */
export class ReasoningItem implements OutputItem {
  readonly index: number;
  readonly #id: string;
  readonly #numbers: EventNumbers;
  readonly #place: string;
  readonly #delta: (text: string) => string;
  #text = '';
  #status: ItemStatus = 'in_progress';

  constructor(id: string, index: number, numbers: EventNumbers) {
    this.index = index;
    this.#id = id;
    this.#numbers = numbers;
    this.#place = `"output_index":${index},"item_id":"${id}","summary_index":0`;
    this.#delta = numbers.template('response.reasoning_summary_text.delta', `${this.#place},"delta":"`, '"');
  }

  open(out: string[]): void {
    out.push(
      this.#numbers.event('response.output_item.added', `"output_index":${this.index},"item":${this.#item('')}`),
      this.#numbers.event('response.reasoning_summary_part.added', `${this.#place},"part":${part('')}`),
    );
  }

  /** @param text escaped for JSON. */
  add(text: string, out: string[]): void {
    this.#text += text;
    out.push(this.#delta(text));
  }

  close(status: 'completed' | 'incomplete', out: string[]): void {
    this.#status = status;
    const numbers = this.#numbers;
    out.push(
      numbers.event('response.reasoning_summary_text.done', `${this.#place},"text":"${this.#text}"`),
      numbers.event('response.reasoning_summary_part.done', `${this.#place},"part":${part(this.#text)}`),
      numbers.event('response.output_item.done', `"output_index":${this.index},"item":${this.json()}`),
    );
  }

  json(): string {
    return this.#item(part(this.#text));
  }

  #item(summary: string): string {
    return `{"id":"${this.#id}","type":"reasoning","status":"${this.#status}","summary":[${summary}]}`;
  }
}

function part(text: string): string {
  return `{"type":"summary_text","text":"${text}"}`;
}
