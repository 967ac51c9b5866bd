import { failureOf, TurnError } from '@plugboard/kernel';
import { type HttpRequest, type HttpRoute, httpErrorOf } from '@plugboard/transport-http';
import { ignoredFields, ignoredHeader, ignoredParameters } from './ignored.js';

export interface RouteParts extends Omit<HttpRoute, 'handle'> {
  /** Parameters of the query and fields of the body that have an effect; others are named in the reply. */
  readonly knows?: readonly string[];
  /** The body of a reply that says that it went well. @throws HttpError, TurnError */
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
        return { status: 200, headers: ignoredHeader(ignored), body: await answer(request) };
      } catch (error) {
        // What only reads may well be asked again.
        throw error instanceof TurnError ? httpErrorOf(failureOf(error, false), route.method !== 'GET') : error;
      }
    },
  };
}
