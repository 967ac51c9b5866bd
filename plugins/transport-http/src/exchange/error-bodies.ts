import type { Extensions, PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { type ErrorFormatter, type ErrorReply, plainError } from '../errors/error-format.js';
import type { HttpError } from '../errors/http-error.js';
import { type HttpRoute, HttpRoutes } from '../routing/routes.js';
import { type HttpUpgrade, HttpUpgrades } from '../routing/upgrades.js';

/**
 * Formats error responses: as the route does that was asked, and for any other request as the first
 * route that has a format.
 */
export class ErrorBodies {
  readonly #routes: Extensions<HttpRoute>;
  readonly #upgrades: Extensions<HttpUpgrade>;

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#routes = extensions(HttpRoutes);
    this.#upgrades = extensions(HttpUpgrades);
  }

  /** @param route of the request, if there is one. */
  format(error: HttpError, requestId: string, route?: Pick<HttpRoute, 'formatError'>): Required<ErrorReply> {
    const { status, headers, body } = error;
    if (body) return { status, headers, body };
    const reply = (route?.formatError ?? this.#first ?? plainError)(error, requestId);
    return { status: reply.status ?? status, headers: { ...headers, ...reply.headers }, body: reply.body };
  }

  get #first(): ErrorFormatter | undefined {
    const all = [...this.#routes.all(), ...this.#upgrades.all()];
    return all.find(({ value }) => value.formatError)?.value.formatError;
  }
}
