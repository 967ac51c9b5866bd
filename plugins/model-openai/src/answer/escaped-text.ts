import type { ModelText } from '@plugboard/kernel/contracts';

/** Text as the server escaped it: encoders write `json` through, `text` is decoded on use. */
export class EscapedText implements ModelText {
  readonly type = 'text';
  /** The text between the quotes of the JSON string, with its escapes. */
  readonly json: string;
  #text: string | undefined;

  /** @param hasEscapes whether `json` contains a backslash. Without one, the text equals `json`. */
  constructor(json: string, hasEscapes: boolean) {
    this.json = json;
    this.#text = hasEscapes ? undefined : json;
  }

  get text(): string {
    this.#text ??= JSON.parse(`"${this.json}"`) as string;
    return this.#text;
  }

  /** The same text in memory of its own: it may be a slice of a much longer one. */
  copy(): EscapedText {
    return new EscapedText(Buffer.from(this.json).toString(), this.#text === undefined);
  }
}
