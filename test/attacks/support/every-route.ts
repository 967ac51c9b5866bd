import { type Access, HttpRoutes } from '@plugboard/transport-http';
import type { TestServer } from '../../support/test-server.js';

/** A request for one of the server's routes. */
export interface Call {
  /** As the table has it: `GET /v1/models/*id`. */
  readonly route: string;
  readonly method: string;
  readonly path: string;
  readonly access: Access;
  readonly takesJson: boolean;
  /** A header that may hold the token in place of `Authorization`. */
  readonly tokenHeader: string | undefined;
}

/** Whether a route asks for a token. Probes and the files of a page do not. */
export function requiresToken({ access }: Call): boolean {
  return typeof access !== 'string';
}

/**
 * A valid id that does not exist: a request for it reaches the route, and changes
 * nothing.
 */
const UNKNOWN_ID = `conv_${'0'.repeat(40)}`;

/**
 * A request for every route that the server has, from its own table.
 *
 * @param id the id or name in the path, already encoded.
 */
export function everyRoute(server: TestServer, id = UNKNOWN_ID): readonly Call[] {
  const routes = server.started.server.extensions(HttpRoutes).all();
  return routes.map(({ value: { method, path, access, body, tokenHeader, when } }) => ({
    route: `${method} ${path}`,
    method,
    path: path.replaceAll(/[{}]/g, '').replaceAll(/[:*]\w+/g, id),
    access,
    takesJson: body === 'json',
    tokenHeader: when === undefined ? tokenHeader : undefined, // the requests here meet no condition
  }));
}

/** JSON that no route takes: what is sent with it is decided by who sends it, and then refused. */
export const NO_BODY = '[]';
