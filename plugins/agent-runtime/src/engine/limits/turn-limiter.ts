import type { PluginContext } from '@plugboard/kernel';
import { DEFAULT_PROJECT, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from '../../config.js';
import { ConcurrencyLimiter, type PermitLimits } from './concurrency-limiter.js';

/** Bounds the turns of the process and shares them between callers. */
export class TurnLimiter extends ConcurrencyLimiter {
  constructor(@inject(CONTEXT) { config, budgets }: PluginContext<RuntimeSettings>) {
    const { permits, queueLength, ...shares } = turnLimits(config);
    super({
      ...shares,
      running: budgets.create({
        name: 'running turns',
        unit: 'turns',
        limit: permits,
        setting: 'limits.runningTurns',
      }),
      queue: budgets.create({
        name: 'queued turns',
        unit: 'turns',
        limit: queueLength,
        setting: 'limits.queuedTurns',
      }),
      rejection: () =>
        new TurnError(
          'overloaded',
          'The server is at its limit of concurrent turns (`limits.runningTurns`), and its queue is full (`limits.queuedTurns`); try again in a moment.',
          { retryAfter: 1 },
        ),
    });
  }

  /** Changes the limits. */
  reconfigure(config: RuntimeSettings): void {
    this.resize(turnLimits(config));
  }
}

/**
 * The limits of the settings. By default no project and no caller can take every permit: turns are
 * long, and a permit that is taken is not taken back. Where `default` is the only project, the
 * share of a project is everything.
 */
function turnLimits({ limits, projects }: RuntimeSettings): PermitLimits {
  const { runningTurns, queuedTurns } = limits;
  const single = Object.keys(projects).every((name) => name === DEFAULT_PROJECT);
  const quarters = (count: number) => Math.ceil((runningTurns * count) / 4);
  const perProject = limits.runningTurnsPerProject ?? quarters(single ? 4 : 3);
  return {
    permits: runningTurns,
    queueLength: queuedTurns,
    projectShare: (project) => (Object.hasOwn(projects, project) ? projects[project]?.runningTurns : undefined) ?? perProject,
    callerShare: limits.runningTurnsPerCaller ?? quarters(single ? 3 : 2),
  };
}
