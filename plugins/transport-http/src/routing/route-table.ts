import { Router } from '@koa/router';
import type { Contribution } from '@plugboard/kernel';
import { upgradeRequired } from '../errors/refusals.js';
import { type BodySchema, bodySchema } from './body-schema.js';
import type { HttpRoute } from './routes.js';
import type { HttpUpgrade } from './upgrades.js';

export interface RouteMatch {
  readonly route: HttpRoute;
  readonly schema: BodySchema | undefined;
  /** If the path is one for WebSockets. */
  readonly upgrade?: HttpUpgrade | undefined;
  /** Path parameters, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
}

const NO_PARAMS = Object.freeze({});

/**
 * Finds the route of a request. Paths are matched as sent; the first matching route in file order
 * wins.
 */
export class RouteTable {
  readonly #router = new Router({ sensitive: true });
  readonly #routes = new Map<unknown, HttpRoute>();
  readonly #schemas = new Map<HttpRoute, BodySchema>();
  readonly #upgrades = new Map<string, HttpUpgrade>();
  /** Matches of paths without parameters, by method and path. */
  readonly #fixed = new Map<string, RouteMatch>();

  /**
   * @throws Error if two entries contribute the same route, or if the schema of a route is invalid.
   */
  constructor(routes: readonly Contribution<HttpRoute>[], upgrades: readonly Contribution<HttpUpgrade>[] = []) {
    for (const { value } of upgrades) this.#upgrades.set(value.path, value);
    const owners = new Map<string, string>();
    for (const { value: route, entry } of [...routes, ...upgrades.map(withoutUpgrade)]) {
      const name = `${route.method} ${route.path}`;
      const owner = owners.get(name);
      if (owner) throw new Error(`${owner} and ${entry} both serve ${name}: remove one of them from the configuration`);
      owners.set(name, entry);
      if (route.schema) this.#schemas.set(route, bodySchema(route.schema, `${entry}: the schema of ${name}`));
      this.#routes.set(this.#router.register(route.path, [route.method], noHandler), route);
    }
  }

  find(method: string, path: string): RouteMatch | undefined {
    const name = `${method} ${path}`;
    const known = this.#fixed.get(name);
    if (known) return known;
    const match = this.#match(method, path);
    // Only paths of routes: what callers make up must not fill the map.
    if (match?.route.path === path) this.#fixed.set(name, match);
    return match;
  }

  #match(method: string, path: string): RouteMatch | undefined {
    const [layer] = this.#router.match(path, method).pathAndMethod;
    const route = this.#routes.get(layer);
    if (!layer || !route) return undefined;
    const upgrade = this.#upgrades.get(route.path);
    return {
      route,
      schema: this.#schemas.get(route),
      ...(method === 'GET' && upgrade && { upgrade }),
      params: layer.paramNames.length === 0 ? NO_PARAMS : layer.params(path, layer.captures(path)),
    };
  }

  /** Whether a WebSocket may be opened on a path. */
  upgrades(path: string): boolean {
    return this.#upgrades.has(path);
  }

  /** The methods of a path, for the `Allow` header; empty if no route has the path. */
  allowed(path: string): readonly string[] {
    const own = this.#router.match(path, '').path.flatMap((layer) => layer.methods);
    const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => own.includes(method));
    return methods.length === 0 ? [] : [...methods, 'OPTIONS'];
  }
}

/** What answers a request for an upgrade's path that asks for no upgrade. */
function withoutUpgrade({ value: { path, access, formatError }, entry }: Contribution<HttpUpgrade>) {
  const handle = () => {
    throw upgradeRequired();
  };
  const format = formatError && { formatError };
  const value: HttpRoute = { method: 'GET', path, access, body: 'none', startsWork: true, ...format, handle };
  return { value, entry };
}

/** The router only matches paths; application.ts runs the route. */
function noHandler(): void {}
