import type { Test } from 'tap';
import { startWithAllRoutes } from './all-routes.js';
import { everyRoute } from './every-route.js';
import { HEAVY_REQUESTS } from './heavy-requests.js';

/** Fails if a route of the distribution has no row in the table of heavy requests. */
export async function assertComplete(t: Test): Promise<void> {
  const server = await startWithAllRoutes(t);
  const rows = Object.keys(HEAVY_REQUESTS);
  t.strictSame(
    everyRoute(server)
      .map(({ route }) => route)
      .filter((route) => !rows.includes(route)),
    [],
    'add the routes to HEAVY_REQUESTS of test/attacks/support/heavy-requests.ts',
  );
}
