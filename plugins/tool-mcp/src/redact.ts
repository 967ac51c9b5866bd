/** Shorter values, such as `1` or `true`, protect nothing, and striking them out would make the rest unreadable. */
const SHORTEST = 6;

/** Gives a function that strikes these values out of a text. Of a value with line breaks each line is one: what is searched are lines. */
export function redactor(values: Iterable<string>): (text: string) => string {
  const secrets = [...values]
    .flatMap((value) => value.split(/\p{Cc}+/u))
    .filter((secret) => secret.length >= SHORTEST)
    .sort((a, b) => b.length - a.length); // the longest first: one may be the beginning of another
  return (text) => secrets.reduce((left, secret) => left.replaceAll(secret, '[redacted]'), text);
}
