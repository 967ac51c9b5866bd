const FORM = /^([a-z][a-z0-9+.-]*):\/\/((?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/**
 * An origin in its one form, as browsers send it: `https://example.org:8443`, in lower case, without the scheme's own port. Undefined for what is
 * none: `null`, two origins, a path behind it.
 */
export function normalOrigin(text: string): string | undefined {
  const [, scheme = '', authority] = FORM.exec(text.toLowerCase()) ?? [];
  if (authority === undefined) return undefined;
  const port = DEFAULT_PORTS[scheme];
  return `${scheme}://${port !== undefined && authority.endsWith(port) ? authority.slice(0, -port.length) : authority}`;
}

/**
 * Whether a page of this origin came from the server that it calls by this Host header. The scheme is the page's: behind a proxy that speaks TLS
 * the server does not know it.
 */
export function isSameOrigin(origin: string, host: string): boolean {
  const [scheme] = /^https?:\/\//.exec(origin) ?? [];
  return scheme !== undefined && normalOrigin(scheme + host) === origin;
}
