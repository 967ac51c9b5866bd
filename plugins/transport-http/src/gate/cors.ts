import type { PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { HttpConfig } from '../config.js';
import type { Exchange } from '../exchange/exchange.js';
import type { HttpReply } from '../routing/routes.js';
import { normalOrigin } from './origin.js';

/** The same for every path, so that a preflight does not reveal which routes exist. */
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';

/** Seconds for which browsers cache a preflight. */
const MAX_AGE = '600';

const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;

/** Header names per preflight: as many as a request may have. */
const MAX_HEADER_NAMES = 100;

/** Adds CORS headers (Fetch, 3.2) for the configured origins. Never allows cookies. */
export class Cors {
  #origins: ReadonlySet<string> = new Set();
  #any = false;

  constructor(@inject(CONTEXT) { config }: PluginContext<HttpConfig>) {
    this.configure(config);
  }

  configure({ origins }: HttpConfig): void {
    this.#origins = new Set(origins.flatMap((origin) => normalOrigin(origin) ?? []));
    this.#any = origins.includes('*');
  }

  allows(origin: string): boolean {
    const normal = normalOrigin(origin);
    return this.#any || (normal !== undefined && this.#origins.has(normal));
  }

  /** Adds the CORS headers of every response. `Vary` is set for unlisted origins, too. */
  addHeaders({ req, ctx }: Exchange): void {
    if (!this.#any && this.#origins.size === 0) return;
    ctx.set('vary', 'Origin');
    const { origin } = req.headers;
    if (origin === undefined || !this.allows(origin)) return;
    ctx.set('access-control-allow-origin', this.#any ? '*' : origin);
    ctx.set('access-control-expose-headers', '*'); // without cookies it means all headers
  }

  /** The reply to a preflight request, which needs no token; undefined for any other. */
  preflight({ req, method }: Exchange): HttpReply | undefined {
    if (method !== 'OPTIONS') return undefined;
    const { origin, 'access-control-request-method': wanted, 'access-control-request-headers': asked } = req.headers;
    if (wanted === undefined || origin === undefined || !this.allows(origin)) return undefined;
    const named = headerNames(asked);
    return {
      status: 204,
      headers: {
        'access-control-allow-methods': METHODS,
        ...(named !== '' && { 'access-control-allow-headers': named }),
        'access-control-max-age': MAX_AGE,
      },
    };
  }
}

/** Echoes the valid header names: `*` would not cover `Authorization`. */
function headerNames(asked = ''): string {
  const names = asked.split(',', MAX_HEADER_NAMES).map((name) => name.trim().toLowerCase());
  return names.filter((name) => HEADER_NAME.test(name)).join(', ');
}
