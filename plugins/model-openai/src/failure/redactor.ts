import { createRedactor } from '@plugboard/kernel';

/** Characters of a model server's message that are passed on. */
const MAX_MESSAGE = 500;
/** Characters of it that are read. */
const MAX_READ = 4 * MAX_MESSAGE;
/** Characters of a secret word in a header's value: shorter ones, such as `Bearer`, are public. */
const MIN_WORD = 8;
/** Characters of a part of a secret that is removed too. */
const MIN_PART = 8;

const REDACTED = '[redacted]';

/** The keys of known providers: OpenAI and many others, Groq, xAI, Google, NVIDIA. */
export const KEY_PATTERNS: readonly RegExp[] = [
  /sk-[A-Za-z0-9_-]{20,}/,
  /gsk_[A-Za-z0-9]{20,}/,
  /xai-[A-Za-z0-9]{20,}/,
  /AIza[A-Za-z0-9_-]{30,}/,
  /nvapi-[A-Za-z0-9_-]{20,}/,
];

/** A key that the server has masked in part, as in `sk-ab****wxyz`. */
const MASKED_KEY = /(?<![\w-])[\w-]*\*{3,}[\w*-]*/;

/** Removes configured secrets from a model server's messages and shortens them. */
export class Redactor {
  readonly #redact: (text: string) => string;
  readonly #secrets: readonly string[];

  /**
   * @param keys the key and the values of headers. Long words of a value, as in `Bearer …`, are
   *   removed on their own too, and so are parts of them.
   * @param address the server's address: not secret, but not for callers.
   */
  constructor(keys: readonly string[], address: readonly string[] = []) {
    const words = keys.flatMap((key) => key.split(/\s+/)).filter((word) => word.length >= MIN_WORD);
    this.#redact = createRedactor({ values: [...keys, ...words, ...address], patterns: [...KEY_PATTERNS, MASKED_KEY] });
    this.#secrets = words;
  }

  clean(text: string): string {
    let clean = this.#redact(text.slice(0, MAX_READ));
    for (const secret of this.#secrets) clean = withoutParts(clean, secret);
    clean = clean.replaceAll(/\s+/g, ' ').trim();
    return clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE - 1).toWellFormed()}…` : clean;
  }
}

/** Replaces every part of a secret that has at least `MIN_PART` characters. */
function withoutParts(text: string, secret: string): string {
  let clean = text;
  for (let from = 0; from + MIN_PART <= secret.length; from++) {
    const part = secret.slice(from, from + MIN_PART);
    if (REDACTED.includes(part)) continue;
    for (let at = clean.indexOf(part); at >= 0; at = clean.indexOf(part)) {
      let end = MIN_PART;
      while (from + end < secret.length && clean[at + end] === secret[from + end]) end += 1;
      clean = clean.slice(0, at) + REDACTED + clean.slice(at + end);
    }
  }
  return clean;
}
