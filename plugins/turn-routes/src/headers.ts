import type { Target } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';

/**
 * The header with the model connection that answered. Names that are not printable ASCII are
 * percent-encoded.
 */
export function connectionHeader(name: string | undefined): Readonly<Record<string, string>> {
  return name === undefined ? {} : { 'x-model-connection': headerText(name) };
}

/**
 * The header with the agent that answers, or the model connection that answers without one. It
 * differs from the request's `model` if that matched nothing and the default agent answers.
 */
export function agentHeader({ name }: Target): Readonly<Record<string, string>> {
  return { 'x-agent': headerText(name) };
}

function headerText(name: string): string {
  return /^[ -~]*$/.test(name) ? name : encodeURIComponent(name.toWellFormed());
}

/** The header of a replayed answer. */
export const REPLAYED_HEADER = { 'idempotent-replayed': 'true' } as const;

/** All values of a header, as received. Node joins them or keeps one. @param name lower case. */
export function headerLines({ rawHeaders }: Pick<HttpRequest, 'rawHeaders'>, name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
}
