import type { HostServer } from '@plugboard/kernel/internal';

/**
 * The kinds of description that the command line knows:
 *
 * | kind | label | text | shown by |
 * | --- | --- | --- | --- |
 * | `route` | the method, `POST` | the path, `/v1/chat/completions` | `plugboard plugins` |
 * | `link` | what the link leads to | a path on the server, or a URL | the start banner |
 * | `detail` | what the text is about, `provider` | one line | `plugboard plugins` |
 */
type Kind = 'route' | 'link' | 'detail';

/** An HTTP route, and the package that serves it. */
interface RouteInfo {
  readonly method: string;
  readonly path: string;
  readonly plugin: string;
}

/** A page or another address for people. */
export interface LinkInfo {
  readonly label: string;
  /** A path on the server, or a URL. */
  readonly target: string;
}

export function routesOf(server: HostServer): RouteInfo[] {
  return ofKind(server, 'route').map(({ label, text, plugin }) => ({ method: label, path: text, plugin }));
}

export function linksOf(server: HostServer): LinkInfo[] {
  return ofKind(server, 'link').map(({ label, text }) => ({ label, target: text }));
}

/** The lines about the contributions of an entry: `provider: openai`. */
export function detailsOf(server: HostServer, entry: string): string[] {
  return ofKind(server, 'detail').flatMap((detail) => (detail.entry === entry ? [`${detail.label}: ${detail.text}`] : []));
}

function ofKind(server: HostServer, kind: Kind) {
  return server.inspection.descriptions().filter((description) => description.kind === kind);
}
