const CENSORED = '[redacted]';

/** A field that is secret by its name, at any depth. pino's own wildcards would cost several times what the rest of a line does. */
const NAMED = String.raw`("(?:apiKey|api_key|token|password)":)"(?:[^"\\]|\\.)*"`;

/** What a credential looks like, whoever's it is: a token of ours, a key of a model provider, an authorization header, but not the name of the entry `auth.bearer`. */
const CREDENTIALS = String.raw`svc[pae]_[0-9A-Za-z]{38}|sk-[A-Za-z0-9_-]{20,}|(?<!auth\.)[Bb]earer\s+[^\s"\\]+`;

/** Shorter ones would take ordinary words with them. */
const SHORTEST_SECRET = 4;

/**
 * A filter for log lines of JSON, in one pass over the text: takes out what is secret by its name, what looks like a credential, and the
 * secrets given, wherever they stand.
 */
export function redactor(secrets: Iterable<string>): (line: string) => string {
  const asInJson = [...secrets]
    .filter(({ length }) => length >= SHORTEST_SECRET)
    .map((secret) => JSON.stringify(secret).slice(1, -1));
  const longestFirst = [...new Set(asInJson)].sort((a, b) => b.length - a.length).map(escaped);
  const pattern = new RegExp([NAMED, ...longestFirst, CREDENTIALS].join('|'), 'g');
  return (line) =>
    line.replace(pattern, (_, name: string | undefined) => (name === undefined ? CENSORED : `${name}"${CENSORED}"`));
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
