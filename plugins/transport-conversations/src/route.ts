import { failureOf, TurnError } from '@plugboard/kernel';
import { headerSafeName, ignoredParamsHeader, turnFailureError } from '@plugboard/openai-protocol';
import type { HttpRequest, HttpRoute } from '@plugboard/transport-http';

export interface RouteParts extends Omit<HttpRoute, 'handle'> {
  /** Parameters of the query and fields of the body that have an effect; others are named in the reply. */
  readonly knows?: readonly string[];
  /** The body of a reply that says that it went well. @throws ProtocolError, TurnError */
  answer(request: HttpRequest): Promise<object>;
}

/** A route that answers with JSON, tells what of the request it passed over, and says what the runtime refused as a status. */
export function route({ knows = [], answer, ...route }: RouteParts): HttpRoute {
  return {
    ...route,
    async handle(request) {
      const fields = route.body === 'json' ? knows : [];
      const parameters = route.body === 'json' ? [] : knows;
      const ignored = [...ignoredParameters(request.query, parameters), ...ignoredFields(request.body, fields)];
      try {
        return {
          status: 200,
          headers: ignoredParamsHeader([...new Set(ignored.map(headerSafeName))]),
          body: await answer(request),
        };
      } catch (error) {
        // What only reads may well be asked again.
        throw error instanceof TurnError ? turnFailureError(failureOf(error, false), route.method !== 'GET') : error;
      }
    },
  };
}

/** Parameters of a query that nobody here knows; of a list, `include[]`, its name. */
function ignoredParameters(query: URLSearchParams, known: readonly string[]): readonly string[] {
  return [...query.keys()].filter((name) => !known.includes(name)).map((name) => name.replace(/\[\w*\]$/, ''));
}

/** Fields of a body that nobody here knows; null says nothing. */
function ignoredFields(body: unknown, known: readonly string[]): readonly string[] {
  return Object.entries(body ?? {}).flatMap(([name, value]) => (value === null || known.includes(name) ? [] : [name]));
}
