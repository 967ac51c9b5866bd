const REDACTED = '[redacted]';

/** Shorter values, such as `1` or `on`, protect nothing, and texts would become unreadable. */
const MIN_LENGTH = 4;

/** How credentials look in a text, as a plugin declares those that it knows. @public */
export interface CredentialShapes {
  /**
   * Patterns that match a whole credential: `/key-[0-9a-f]{32}/`. They are joined into one
   * expression, so flags and back references have no effect.
   */
  readonly patterns?: readonly RegExp[];
  /** Names of fields in JSON text whose strings are credentials, at any depth: `apiKey`. */
  readonly fields?: readonly string[];
}

/** The secrets that a redactor removes. @experimental */
export interface RedactorOptions extends CredentialShapes {
  /** Secrets to remove wherever they occur. Each line of a value is also a secret. */
  readonly values?: Iterable<string>;
  /** Characters below which a value, or a line of one, is not a secret. 4 by default. */
  readonly minLength?: number;
}

/**
 * Creates a function that replaces secrets in a text with `[redacted]`, in one pass. It takes plain
 * text and JSON text: values are also found in their JSON spelling, and JSON stays valid.
 *
 * ```ts
 * const redact = createRedactor({ values: [config.apiKey], patterns: [/key-[0-9a-f]{32}/] });
 * throw new Error(`the server reported: ${redact(message)}`);
 * ```
 *
 * @experimental
 */
export function createRedactor(options: RedactorOptions): (text: string) => string {
  const { values = [], patterns = [], fields = [], minLength = MIN_LENGTH } = options;
  const parts = [...fieldPatterns(fields), ...valuePatterns(values, minLength), ...patterns.map(({ source }) => source)];
  const pattern = new RegExp([...new Set(parts)].join('|'), 'g');
  // Most texts contain none, and looking for one is much cheaper than replacing.
  return (text) => (text.search(pattern) < 0 ? text : text.replace(pattern, replacement));
}

/** A field keeps its name: the first group of the pattern. */
function replacement(_match: string, field: unknown): string {
  return typeof field === 'string' ? `${field}"${REDACTED}"` : REDACTED;
}

function fieldPatterns(fields: readonly string[]): string[] {
  // The group is there even without fields, so that it is always the first.
  const names = fields.length > 0 ? fields.map(RegExp.escape).join('|') : '(?!)';
  const text = String.raw`"(?:[^"\\]|\\.)*"`;
  return [String.raw`("(?:${names})":)(?:${text}|\[(?:${text},?)*\])`];
}

/** Longest first: one secret may be the beginning of another. */
function valuePatterns(values: Iterable<string>, minLength: number): string[] {
  const secrets = [...values]
    .flatMap((value) => [value, ...value.split(/\p{Cc}+/u)])
    .filter(({ length }) => length >= minLength)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return [...new Set(secrets)].sort((a, b) => b.length - a.length).map(RegExp.escape);
}
