/** Percent-encodes everything but the unreserved characters of RFC 3986. */
export function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, percent);
}

/**
 * Percent-encodes for a query with `allowReserved`: reserved characters stay, but those that would
 * begin another parameter or end the query.
 */
export function encodeReserved(text: string): string {
  return text.toWellFormed().replace(/[^A-Za-z0-9\-._~:/?@!$'()*,;]+/g, encode);
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}
