import type { PluginContext } from '@plugboard/kernel';
import type { Budgets } from '@plugboard/kernel/contracts';
import type { Instruments } from './instruments.js';

/** Exports the limits of the server's status line, its entries, and its version. */
export function exportServerState(instruments: Instruments, { budgets, host }: PluginContext): void {
  const limits = (read: (report: ReturnType<Budgets['reports']>[number]) => number) => () =>
    budgets.reports().map((report) => [{ setting: report.setting }, read(report)] as const);
  instruments.gauge(
    'plugboard_limit_used',
    'What is in use of a limit',
    ['setting'],
    limits(({ used }) => used),
  );
  instruments.gauge(
    'plugboard_limit_max',
    'The limit',
    ['setting'],
    limits(({ limit }) => limit),
  );
  instruments.total(
    'plugboard_limit_refused_total',
    'How often a limit refused something',
    ['setting'],
    limits(({ refused }) => refused),
  );
  instruments.gauge('plugboard_entry_up', '1 while an entry runs and works as it should, else 0', ['entry'], () =>
    host.entries().map(({ entry, status, health }) => {
      const works = status === 'running' && (health === undefined || health.state === 'ok');
      return [{ entry }, works ? 1 : 0] as const;
    }),
  );
  instruments.gauge('plugboard_build_info', '1, with the version of Plugboard', ['version'], () => [
    [{ version: host.version }, 1],
  ]);
}
