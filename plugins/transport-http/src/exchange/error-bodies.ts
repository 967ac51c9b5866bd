import type { Extensions, PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { type ErrorFormatter, plainError } from '../errors/error-format.js';
import type { HttpError } from '../errors/http-error.js';
import { type HttpRoute, HttpRoutes } from '../routing/routes.js';
import { type HttpUpgrade, HttpUpgrades } from '../routing/upgrades.js';

/**
 * Formats the bodies of error responses: as the route does that was asked, and for any other
 * request as the first route that has a format.
 */
export class ErrorBodies {
  readonly #routes: Extensions<HttpRoute>;
  readonly #upgrades: Extensions<HttpUpgrade>;

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#routes = extensions(HttpRoutes);
    this.#upgrades = extensions(HttpUpgrades);
  }

  /**
   * The body of an error response, as JSON text.
   *
   * @param route of the request, if there is one.
   */
  format(error: HttpError, route?: Pick<HttpRoute, 'formatError'>): string {
    return JSON.stringify(error.body ?? (route?.formatError ?? this.#first ?? plainError)(error));
  }

  get #first(): ErrorFormatter | undefined {
    const all = [...this.#routes.all(), ...this.#upgrades.all()];
    return all.find(({ value }) => value.formatError)?.value.formatError;
  }
}
