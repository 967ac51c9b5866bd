import type { MessageEntity } from 'grammy/types';

/** A text as Telegram shows it. Offsets and lengths count UTF-16 units. */
export interface Formatted {
  readonly text: string;
  readonly entities: readonly MessageEntity[];
}

/** Puts an entity before those that it contains, if it was added after them. */
export function inOrder(entities: readonly MessageEntity[]): readonly MessageEntity[] {
  return entities.toReversed().toSorted((a, b) => a.offset - b.offset || b.length - a.length);
}

/** Collects a text and its entities from left to right. */
export class FormattedText {
  readonly #pieces: string[] = [];
  readonly #entities: MessageEntity[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(text: string): this {
    this.#pieces.push(text);
    this.#length += text.length;
    return this;
  }

  addFormatted({ text, entities }: Formatted): this {
    for (const entity of entities.toReversed()) this.#entities.push({ ...entity, offset: entity.offset + this.#length });
    return this.add(text);
  }

  /** Formats what was added since `offset`. An empty text gets no entity. */
  format(offset: number, entity: EntityKind): this {
    if (this.#length > offset) this.#entities.push({ ...entity, offset, length: this.#length - offset });
    return this;
  }

  get result(): Formatted {
    return { text: this.#pieces.join(''), entities: inOrder(this.#entities) };
  }
}

/** An entity without its place. */
export type EntityKind =
  | { readonly type: 'bold' | 'italic' | 'strikethrough' | 'code' | 'blockquote' }
  | { readonly type: 'pre'; readonly language?: string }
  | { readonly type: 'text_link'; readonly url: string };
