import type { IncomingMessage } from 'node:http';
import { Router } from '@koa/router';
import type { Contribution } from '@plugboard/kernel';
import { compileSchema, type ValueValidator } from '@plugboard/kernel/contracts';
import { HttpError } from '../errors/http-error.js';
import { upgradeRequired } from '../errors/refusals.js';
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

/** What decides between routes of one path. `query` is without the question mark. */
type RoutedRequest = { readonly req: Pick<IncomingMessage, 'headers'>; readonly query: string };

const NO_PARAMS = Object.freeze({});

/** Whether a route serves only some requests for its path: such routes are tried first. */
function isNarrow({ value: { when, method } }: { readonly value: HttpRoute }): boolean {
  return when !== undefined || method === 'HEAD';
}

function isServed(route: HttpRoute, { req: { headers }, query }: RoutedRequest): boolean {
  return route.when?.({ headers, query: new URLSearchParams(query) }) ?? true;
}

/**
 * Finds the route of a request. Paths are matched as sent; the first matching route in file order
 * wins, but those with a condition or for HEAD alone come before the others.
 */
export class RouteTable {
  readonly #router = new Router({ sensitive: true });
  readonly #routes = new Map<unknown, HttpRoute>();
  readonly #schemas = new Map<HttpRoute, BodySchema>();
  readonly #upgrades = new Map<string, HttpUpgrade>();
  /** Matches of paths without parameters, by method and path. */
  readonly #fixed = new Map<string, readonly RouteMatch[]>();

  /** @throws Error if two entries contribute the same route, or a schema is invalid. */
  constructor(routes: readonly Contribution<HttpRoute>[], upgrades: readonly Contribution<HttpUpgrade>[] = []) {
    for (const { value } of upgrades) this.#upgrades.set(value.path, value);
    const owners = new Map<string, string>();
    const all = [...routes, ...upgrades.map(withoutUpgrade)];
    for (const { value: route, entry } of [...all.filter(isNarrow), ...all.filter((one) => !isNarrow(one))]) {
      const name = `${route.method} ${route.path}`;
      const owner = route.when ? undefined : owners.get(name);
      if (owner) throw new Error(`${owner} and ${entry} both serve ${name}: remove one of them from the configuration`);
      if (!route.when) owners.set(name, entry);
      if (route.schema) this.#schemas.set(route, bodySchema(route.schema, `${entry}: the schema of ${name}`));
      this.#routes.set(this.#router.register(route.path, [route.method], noHandler), route);
    }
  }

  find(method: string, path: string, request: RoutedRequest): RouteMatch | undefined {
    const name = `${method} ${path}`;
    let matches = this.#fixed.get(name);
    if (!matches) {
      matches = this.#matches(method, path);
      // Only paths of routes: what callers make up must not fill the map.
      if (matches[0]?.route.path === path) this.#fixed.set(name, matches);
    }
    const [first] = matches;
    return first?.route.when ? matches.find(({ route }) => isServed(route, request)) : first;
  }

  /** The first route of a path that would serve the request if it had another method. */
  routeAt(path: string, request: RoutedRequest): HttpRoute | undefined {
    const routes = this.#router.match(path, '').path.flatMap((layer) => this.#routes.get(layer) ?? []);
    return routes.find((route) => isServed(route, request));
  }

  #matches(method: string, path: string): readonly RouteMatch[] {
    return this.#router.match(path, method).pathAndMethod.flatMap((layer) => {
      const route = this.#routes.get(layer);
      if (!route) return [];
      const upgrade = this.#upgrades.get(route.path);
      return {
        route,
        schema: this.#schemas.get(route),
        ...(method === 'GET' && upgrade && { upgrade }),
        params: layer.paramNames.length === 0 ? NO_PARAMS : layer.params(path, layer.captures(path)),
      };
    });
  }

  /** Whether a WebSocket may be opened on a path. */
  upgrades(path: string): boolean {
    return this.#upgrades.has(path);
  }

  /** The methods of a path, for the `Allow` header; empty if no route has the path. */
  allowed(path: string): readonly string[] {
    const own = this.#router.match(path, '').path.flatMap((layer) => layer.methods);
    const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => own.includes(method));
    return methods.every((method) => method === 'HEAD') ? [] : [...methods, 'OPTIONS'];
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

/** Checks the JSON body of a route. @throws HttpError 400 with the first mistake. */
type BodySchema = (body: unknown) => void;

/**
 * Compiles the schema of a route's body.
 * @param about names the schema in errors.
 * @throws Error if the schema is invalid.
 */
function bodySchema(schema: Readonly<Record<string, unknown>>, about: string): BodySchema {
  const validate = compile(schema, about);
  return (body) => {
    const [mistake] = validate(body);
    if (mistake === undefined) return;
    throw new HttpError(400, `The request body is invalid: ${mistake.message}.`, { code: 'invalid_body' });
  };
}

function compile(schema: Readonly<Record<string, unknown>>, about: string): ValueValidator {
  try {
    return compileSchema(schema);
  } catch (error) {
    throw new Error(`${about} is invalid: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}
