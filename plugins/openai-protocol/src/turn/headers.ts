import type { HttpRequest } from '@plugboard/transport-http';

/**
 * The header with the model connection that answered. Names that are not printable ASCII are
 * percent-encoded.
 */
export function connectionHeader(name: string | undefined): Readonly<Record<string, string>> {
  if (name === undefined) return {};
  return { 'x-model-connection': /^[ -~]*$/.test(name) ? name : encodeURIComponent(name.toWellFormed()) };
}

/** All values of a header, as received. Node joins them or keeps one. @param name lower case. */
export function headerLines({ rawHeaders }: Pick<HttpRequest, 'rawHeaders'>, name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
}
