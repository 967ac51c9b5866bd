import { createRedactor } from '@plugboard/kernel';

/** How many characters of a model server's message are passed on. */
const MAX_LENGTH = 500;
/** A shorter word of a header's value, such as `Bearer`, is not a secret. */
const MIN_WORD = 8;

/** Removes configured secrets from a model server's messages and shortens them. */
export class Redactor {
  readonly #redact: (text: string) => string;

  /** @param values keys, header values, the server's address. Long words of a value, as in `Bearer …`, are removed on their own too. */
  constructor(values: readonly string[]) {
    const words = values.flatMap((value) => value.split(/\s+/)).filter((word) => word.length >= MIN_WORD);
    this.#redact = createRedactor({ values: [...values, ...words] });
  }

  clean(text: string): string {
    const clean = this.#redact(text).replaceAll(/\s+/g, ' ').trim();
    return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH - 1)}…` : clean;
  }
}
