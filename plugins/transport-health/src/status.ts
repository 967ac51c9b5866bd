import type { Clock, HostView } from '@plugboard/kernel';
import type { Budgets } from '@plugboard/kernel/contracts';
import type { HttpRoute } from '@plugboard/transport-http';
import type { Report } from './health.js';

interface StatusOptions {
  readonly host: HostView;
  readonly budgets: Budgets;
  readonly clock: Clock;
  readonly report: () => Promise<Report>;
}

/** `GET /v1/status`: what the server consists of, how each part works, and what it uses. */
export function statusRoute({ host, budgets, clock, report }: StatusOptions): HttpRoute {
  const begun = clock.monotonic();
  return {
    method: 'GET',
    path: '/v1/status',
    access: { orOpen: ['admin'] },
    body: 'none',
    startsWork: false,
    handle: async () => {
      const body = {
        ...(await report()),
        version: host.version,
        phase: host.phase,
        uptime_seconds: Math.floor((clock.monotonic() - begun) / 1000),
        entries: host.entries().map(entryOf),
        limits: budgets.reports(),
      };
      return { status: 200, headers: { 'cache-control': 'no-store' }, body };
    },
  };
}

/** `health` is null for an entry that does not run or does not say; `reason` is why it fails. */
function entryOf({ entry, plugin, version, status, health, reason }: ReturnType<HostView['entries']>[number]): object {
  const [known = null, why = null] = [health?.state, reason ?? health?.reason];
  return { entry, plugin: plugin ?? null, version: version ?? null, status, health: known, reason: why };
}
