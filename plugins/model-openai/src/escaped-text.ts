import type { ModelText } from '@plugboard/kernel';

/** A piece of text as the model server escaped it. Whoever writes JSON again takes it as it is; it is decoded only for who asks. */
export class EscapedText implements ModelText {
  readonly type = 'text';
  /** What stands between the quotes of the JSON string. */
  readonly json: string;
  #text: string | undefined;

  /** @param hasEscapes whether there is a backslash in it: without one, it is its own decoding. */
  constructor(json: string, hasEscapes: boolean) {
    this.json = json;
    this.#text = hasEscapes ? undefined : json;
  }

  get text(): string {
    this.#text ??= JSON.parse(`"${this.json}"`) as string;
    return this.#text;
  }
}
