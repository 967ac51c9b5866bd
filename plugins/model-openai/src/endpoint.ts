/** Where a connection's requests go. */
export interface Endpoint {
  /** `https://api.openai.com` */
  readonly origin: string;
  /** `api.openai.com`, with the port where it is not the scheme's own. */
  readonly host: string;
  /** `/v1/chat/completions`, with the base URL's query, which some servers want. */
  readonly path: string;
}

/**
 * Reads a base URL. One without a scheme is http: that is how addresses of servers in the same network are mostly written.
 *
 * @returns the endpoint, or what is wrong with the URL, as half a sentence.
 */
export function parseBaseUrl(baseUrl: string): Endpoint | string {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(baseUrl) ? baseUrl : `http://${baseUrl}`;
  if (!URL.canParse(text)) return 'is no URL; one looks like https://api.openai.com/v1 or 127.0.0.1:11434/v1';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return `has the scheme ${url.protocol}//; it must be http:// or https://`;
  if (url.username !== '' || url.password !== '')
    return 'holds a user name or a password; put them into headers, which are kept secret';
  if (url.pathname.endsWith('/chat/completions')) return 'must not end in /chat/completions: that is added to it';
  // A variable that ends in a slash, and `/v1` behind it, is a common way to get two.
  const path = `${url.pathname}/chat/completions`.replaceAll(/\/{2,}/g, '/');
  return { origin: url.origin, host: url.host, path: path + url.search };
}
