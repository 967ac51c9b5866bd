import type { Test } from 'tap';
import { LiveSocket } from '../../support/live-socket.js';
import { startWithAllRoutes, TOKEN } from './all-routes.js';
import { everyRoute } from './every-route.js';
import { HEAVY_REQUESTS } from './heavy-requests.js';

/**
 * Fails if a route of the distribution, or a message that its sockets accept, has no row in the
 * table of heavy requests.
 */
export async function assertComplete(t: Test): Promise<void> {
  const server = await startWithAllRoutes(t);
  const routes = everyRoute(server).map(({ route }) => route);
  const socket = await LiveSocket.open(t, server, { path: '/v1/live', token: TOKEN });
  socket.send({ type: 'unknown' });
  // The refusal names all types that the server reads.
  const { message = '' } = (await socket.next()).error as { readonly message?: string };
  const [, supported = ''] = message.split('Supported values are: ');
  const types = Array.from(supported.matchAll(/'([^']+)'/g), ([, type]) => `SOCKET ${type}`);
  t.ok(types.includes('SOCKET response.create'), message);
  const rows = Object.keys(HEAVY_REQUESTS);
  t.strictSame(
    [...routes, ...types].filter((name) => !rows.includes(name)),
    [],
    'add them to HEAVY_REQUESTS of test/attacks/support/heavy-requests.ts',
  );
}
