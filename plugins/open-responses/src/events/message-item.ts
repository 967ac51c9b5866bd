import type { EventNumbers } from './event-numbers.js';
import type { ItemStatus, OutputItem } from './output-item.js';

/** A `message` item: what the model says in one step. */
export class MessageItem implements OutputItem {
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
    this.#place = `"output_index":${index},"item_id":"${id}","content_index":0`;
    this.#delta = numbers.template('response.output_text.delta', `${this.#place},"delta":"`, '","logprobs":[]');
  }

  open(out: string[]): void {
    out.push(
      this.#numbers.event('response.output_item.added', `"output_index":${this.index},"item":${this.#item('')}`),
      this.#numbers.event('response.content_part.added', `${this.#place},"part":${part('')}`),
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
      numbers.event('response.output_text.done', `${this.#place},"text":"${this.#text}","logprobs":[]`),
      numbers.event('response.content_part.done', `${this.#place},"part":${part(this.#text)}`),
      numbers.event('response.output_item.done', `"output_index":${this.index},"item":${this.json()}`),
    );
  }

  json(): string {
    return this.#item(part(this.#text));
  }

  #item(content: string): string {
    return `{"id":"${this.#id}","type":"message","role":"assistant","status":"${this.#status}","content":[${content}]}`;
  }
}

function part(text: string): string {
  return `{"type":"output_text","text":"${text}","annotations":[],"logprobs":[]}`;
}
