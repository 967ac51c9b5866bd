import type { EventNumbers } from './event-numbers.js';
import type { OutputItem } from './output-item.js';

/** A `compaction` item: the sealed summary of a conversation. It comes whole. */
export class CompactionItem implements OutputItem {
  readonly index: number;
  readonly #id: string;
  readonly #content: string;

  /** @param content escaped for JSON. */
  constructor(id: string, index: number, content: string) {
    this.index = index;
    this.#id = id;
    this.#content = content;
  }

  write(numbers: EventNumbers, out: string[]): void {
    const fields = `"output_index":${this.index},"item":${this.json()}`;
    out.push(numbers.event('response.output_item.added', fields), numbers.event('response.output_item.done', fields));
  }

  json(): string {
    return `{"id":"${this.#id}","type":"compaction","encrypted_content":"${this.#content}"}`;
  }
}
