import { Page, protocolRoute } from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { headerSafeName, ignoredParamsHeader } from '@plugboard/turn-routes';

interface JsonRoute extends Omit<HttpRoute, 'handle'> {
  /**
   * Query parameters, or body fields, that have an effect. Others are named in `x-ignored-params`.
   */
  readonly accepts?: readonly string[];
  /**
   * Returns the body of a 200 reply: an object to send as JSON, or a page of a list.
   *
   * @throws ProtocolError, TurnError
   */
  answer(request: HttpRequest): Promise<object>;
}

/**
 * Creates a route that answers with JSON, reports ignored parameters, and converts a `TurnError` to
 * its status.
 */
export function route({ accepts = [], answer, ...route }: JsonRoute): HttpRoute {
  return protocolRoute({
    ...route,
    async handle(request) {
      const fields = route.body === 'json' ? accepts : [];
      const parameters = route.body === 'json' ? [] : accepts;
      const ignored = [...ignoredParameters(request.query, parameters), ...ignoredFields(request.body, fields)];
      return reply(await answer(request), ignoredParamsHeader([...new Set(ignored.map(headerSafeName))]));
    },
  });
}

function reply(body: object, headers: Readonly<Record<string, string>>): HttpReply {
  if (!(body instanceof Page)) return { status: 200, headers, body };
  return { status: 200, headers: { ...headers, 'content-type': 'application/json; charset=utf-8' }, body: body.toText() };
}

/** Query parameters without effect. `include[]` is reported as `include`. */
function ignoredParameters(query: URLSearchParams, known: readonly string[]): readonly string[] {
  return [...query.keys()].filter((name) => !known.includes(name)).map((name) => name.replace(/\[\w*\]$/, ''));
}

/** Body fields without effect. Null counts as absent. */
function ignoredFields(body: unknown, known: readonly string[]): readonly string[] {
  return Object.entries(body ?? {}).flatMap(([name, value]) => (value === null || known.includes(name) ? [] : [name]));
}
