import type { IncomingHttpHeaders } from 'node:http';
import type { Extensions, PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { type ErrorFormatter, type ErrorReply, plainError } from '../errors/error-format.js';
import type { HttpError } from '../errors/http-error.js';
import { type HttpRoute, HttpRoutes } from '../routing/routes.js';
import { type HttpUpgrade, HttpUpgrades } from '../routing/upgrades.js';

const NO_QUERY = new URLSearchParams();

/** What is known of a request that an error answers. */
export interface FailedRequest {
  /** The route of its path, if there is one. */
  readonly route?: Pick<HttpRoute, 'formatError'> | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * Formats error responses: as the route does that was asked. Any other request gets the format of
 * the first route that serves only requests like it, or else of the first route that has a format.
 */
export class ErrorBodies {
  readonly #routes: Extensions<HttpRoute>;
  readonly #upgrades: Extensions<HttpUpgrade>;

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#routes = extensions(HttpRoutes);
    this.#upgrades = extensions(HttpUpgrades);
  }

  /** @param request absent for a request that could not be read. */
  format(error: HttpError, requestId: string, request?: FailedRequest): Required<ErrorReply> {
    const { status, headers, body } = error;
    if (body) return { status, headers, body };
    const reply = (request?.route?.formatError ?? this.#formatFor(request) ?? plainError)(error, requestId);
    return { status: reply.status ?? status, headers: { ...headers, ...reply.headers }, body: reply.body };
  }

  #formatFor(request: FailedRequest | undefined): ErrorFormatter | undefined {
    const routes = this.#routes.all().map(({ value }) => value);
    const isLike = ({ when }: HttpRoute) => request && when?.({ headers: request.headers, query: NO_QUERY });
    const first = [...routes, ...this.#upgrades.all().map(({ value }) => value)].find(({ formatError }) => formatError);
    return (routes.find((route) => route.formatError && isLike(route)) ?? first)?.formatError;
  }
}
