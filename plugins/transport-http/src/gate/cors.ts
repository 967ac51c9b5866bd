import { CONFIG, inject, injectable } from '@plugboard/kernel';
import type { HttpConfig } from '../config.js';
import type { Exchange } from '../exchange/exchange.js';
import type { HttpReply } from '../routing/routes.js';
import { normalOrigin } from './origin.js';

/** What pages may read of an answer's head: what clients of this protocol look at. */
const EXPOSED = [
  'x-request-id',
  'x-ignored-params',
  'x-model-connection',
  'x-should-retry',
  'retry-after',
  'retry-after-ms',
  'idempotent-replayed',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
].join(', ');

/** The same for every path: who has no token learns nothing of what is there, and who has one can read its 404 and 405. */
const METHODS = 'GET, HEAD, POST, DELETE';

/** Seconds for which browsers remember a preflight's answer. */
const MAX_AGE = '600';

const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;

/** How many headers a page may ask for: as many as a request may have. */
const ASKED_LIMIT = 100;

/**
 * Lets pages of the listed origins call, and read what they are answered (Fetch, 3.2). Never with cookies: there are none, a token is sent in
 * `Authorization`.
 */
@injectable()
export class Cors {
  readonly #origins: ReadonlySet<string>;
  readonly #any: boolean;

  constructor(@inject(CONFIG) { origins }: HttpConfig) {
    this.#origins = new Set(origins.flatMap((origin) => normalOrigin(origin) ?? []));
    this.#any = origins.includes('*');
  }

  lists(origin: string): boolean {
    const normal = normalOrigin(origin);
    return this.#any || (normal !== undefined && this.#origins.has(normal));
  }

  /** Adds what every answer to the request carries, a refusal too. Caches are told even where the origin is not listed. */
  mark({ req, headers }: Exchange): void {
    if (!this.#any && this.#origins.size === 0) return;
    headers.vary = 'Origin';
    const { origin } = req.headers;
    if (origin === undefined || !this.lists(origin)) return;
    headers['access-control-allow-origin'] = this.#any ? '*' : origin;
    headers['access-control-expose-headers'] = EXPOSED;
  }

  /** The answer to a browser that asks whether a page may do what it is about to; undefined for any other request. It needs no token. */
  preflight({ req, method }: Exchange): HttpReply | undefined {
    const { origin, 'access-control-request-method': wanted, 'access-control-request-headers': asked } = req.headers;
    if (method !== 'OPTIONS' || wanted === undefined || origin === undefined || !this.lists(origin)) return undefined;
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

/** Echoed, because clients send headers of their own that no list knows, and `*` does not cover `Authorization`. What is no name is left out. */
function headerNames(asked = ''): string {
  const names = asked.split(',', ASKED_LIMIT).map((name) => name.trim().toLowerCase());
  return names.filter((name) => HEADER_NAME.test(name)).join(', ');
}
