const FORM = /^([a-z][a-z0-9+.-]*):\/\/((?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/**
 * Normalises an origin to the form that browsers send: `https://example.org:8443`, lower case,
 * without the default port. Returns undefined for anything else: `null`, two origins, a path.
 */
export function normalOrigin(text: string): string | undefined {
  const [, scheme = '', authority] = FORM.exec(text.toLowerCase()) ?? [];
  if (authority === undefined) return undefined;
  const port = DEFAULT_PORTS[scheme];
  return `${scheme}://${port !== undefined && authority.endsWith(port) ? authority.slice(0, -port.length) : authority}`;
}

/**
 * Whether a page of this origin was served by the host in the Host header. Uses the page's scheme:
 * behind a TLS proxy the server does not know its own.
 */
export function isSameOrigin(origin: string, host: string): boolean {
  const [scheme] = /^https?:\/\//.exec(origin) ?? [];
  return scheme !== undefined && normalOrigin(scheme + host) === origin;
}
