/** Where a connection sends its requests. */
export interface Endpoint {
  /** `https://api.openai.com` */
  readonly origin: string;
  /** `api.openai.com`, with the port where it is not the scheme's default. */
  readonly host: string;
  /** `/v1/chat/completions`, with the query of the base URL, which some servers need. */
  readonly path: string;
}

/**
 * Parses a base URL. Without a scheme it is http, as addresses in a local network are usually
 * written.
 *
 * @returns the endpoint, or what is wrong with the URL: the rest of a sentence about it.
 */
export function parseBaseUrl(baseUrl: string): Endpoint | string {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(baseUrl) ? baseUrl : `http://${baseUrl}`;
  if (!URL.canParse(text)) return 'is not a valid URL; examples: https://api.openai.com/v1, 127.0.0.1:11434/v1';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return `has the scheme ${url.protocol}//; use http:// or https://`;
  if (url.username !== '' || url.password !== '')
    return 'contains a user name or a password; use headers instead, which are kept secret';
  if (url.pathname.endsWith('/chat/completions')) return 'must not end in /chat/completions, which is appended to it';
  // A variable that ends in a slash, followed by `/v1`, gives two slashes.
  const path = `${url.pathname}/chat/completions`.replaceAll(/\/{2,}/g, '/');
  return { origin: url.origin, host: url.host, path: path + url.search };
}
