import type { EventNumbers } from './event-numbers.js';
import type { OutputItem } from './output-item.js';

/** The constant fields of the two types, as JSON. */
export const COMPACTION = '"type":"compaction"';
export const SEALED_REASONING = '"type":"reasoning","status":"completed","summary":[]';

/**
 * A `compaction` item with the sealed summary of a conversation, or a `reasoning` item with what a
 * model connection attached to a step. It comes whole.
 */
export class SealedItem implements OutputItem {
  readonly index: number;
  readonly #id: string;
  readonly #fields: string;
  readonly #content: string;

  /** @param content escaped for JSON. */
  constructor(id: string, index: number, fields: string, content: string) {
    this.index = index;
    this.#id = id;
    this.#fields = fields;
    this.#content = content;
  }

  write(numbers: EventNumbers, out: string[]): void {
    const fields = `"output_index":${this.index},"item":${this.json()}`;
    out.push(numbers.event('response.output_item.added', fields), numbers.event('response.output_item.done', fields));
  }

  json(): string {
    return `{"id":"${this.#id}",${this.#fields},"encrypted_content":"${this.#content}"}`;
  }
}
