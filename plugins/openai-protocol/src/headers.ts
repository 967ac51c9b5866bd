import type { HttpRequest } from '@plugboard/transport-http';

/** The name of the connection that answered, where it is known when the head is sent; one that does not fit a header, encoded. */
export function connectionHeader(name: string | undefined): Readonly<Record<string, string>> {
  if (name === undefined) return {};
  return { 'x-model-connection': /^[ -~]*$/.test(name) ? name : encodeURIComponent(name.toWellFormed()) };
}

/** The values of all lines of a header, as they came. Node joins them, or drops all but one. @param name in lower case. */
export function headerLines({ rawHeaders }: Pick<HttpRequest, 'rawHeaders'>, name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
}
