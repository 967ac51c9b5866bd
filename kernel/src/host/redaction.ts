const CENSORED = '[redacted]';

/** What a credential looks like, whoever's it is: a token of ours, a key of a model provider, an authorization header. */
const CREDENTIALS = String.raw`svc[pae]_[0-9A-Za-z]{38}|sk-[A-Za-z0-9_-]{20,}|[Bb]earer\s+[^\s"\\]+`;

/**
 * A filter for log lines of JSON, in one pass over the text: takes out what looks like a credential, and every secret. Secrets that are too short to be any are left: they would take ordinary words with them.
 */
export function redactor(secrets: Iterable<string>): (line: string) => string {
  const values = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < 4) continue;
    values.add(JSON.stringify(secret).slice(1, -1));
  }
  const longestFirst = [...values]
    .sort((a, b) => b.length - a.length)
    .map((value) => value.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  const pattern = new RegExp([...longestFirst, CREDENTIALS].join('|'), 'g');
  return (line) => line.replace(pattern, CENSORED);
}
