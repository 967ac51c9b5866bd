import { Router } from '@koa/router';
import type { Contribution } from '@plugboard/kernel';
import type { HttpRoute } from './routes.js';

export interface RouteMatch {
  readonly route: HttpRoute;
  /** The path's parameters, decoded once. */
  readonly params: Readonly<Record<string, string>>;
}

const NO_PARAMS = Object.freeze({});

/**
 * Finds the route of a request. Paths are matched as they were sent; where several routes match, the one that stands first in
 * the configuration wins.
 */
export class RouteTable {
  readonly #router = new Router({ sensitive: true });
  readonly #routes = new Map<unknown, HttpRoute>();

  /** @throws Error where two entries open the same route. */
  constructor(routes: readonly Contribution<HttpRoute>[]) {
    const owners = new Map<string, string>();
    for (const { value: route, entry } of routes) {
      const name = `${route.method} ${route.path}`;
      const owner = owners.get(name);
      if (owner) throw new Error(`${owner} and ${entry} both open ${name}: take one of them out of the configuration`);
      owners.set(name, entry);
      this.#routes.set(this.#router.register(route.path, [route.method], matchedOnly), route);
    }
  }

  find(method: string, path: string): RouteMatch | undefined {
    const [layer] = this.#router.match(path, method).pathAndMethod;
    const route = this.#routes.get(layer);
    if (!layer || !route) return undefined;
    return { route, params: layer.paramNames.length === 0 ? NO_PARAMS : layer.params(path, layer.captures(path)) };
  }

  /** The methods that a path takes, as an `Allow` header names them; empty where no route has the path. */
  allowed(path: string): readonly string[] {
    const own = this.#router.match(path, '').path.flatMap((layer) => layer.methods);
    const methods = ['GET', 'HEAD', 'POST', 'DELETE'].filter((method) => own.includes(method));
    return methods.length === 0 ? [] : [...methods, 'OPTIONS'];
  }
}

/** The router only matches: what runs, and when, is the application's. */
function matchedOnly(): void {}
