import type { StatusBoard } from '../lifecycle/status-board.js';
import type { Registered } from './register.js';
import { type RegisterEntriesDependencies, registerLate } from './register-entries.js';
import type { Revision } from './revision.js';

/**
 * Registers the entries that stand in for optional ones that failed to register or to start:
 * `unless` has disabled them because of those alone. An entry that runs already stays, even if its
 * `unless` names a stand-in.
 * @returns them in the order of the file. They are not started.
 * @throws ConfigError if a stand-in has a mistake: its options are checked only now.
 */
export async function registerStandIns(
  revision: Revision,
  status: StatusBoard,
  dependencies: RegisterEntriesDependencies,
): Promise<readonly Registered[]> {
  const all: Registered[] = [];
  for (let failed = -1; failed !== revision.failed.size; ) {
    failed = revision.failed.size;
    if (failed === 0) break;
    const { configuration } = revision;
    const known = new Set(revision.order.map(({ id }) => id));
    const isNew = ({ id }: { readonly id: string }) => !known.has(id) && !revision.failed.has(id);
    const entries = await configuration.standIns(revision.failed, isNew);
    const registered = registerLate(entries, revision, dependencies);
    configuration.problems.throwIfAny();
    for (const { id } of registered) {
      status.add(id, 'registered');
      dependencies.log.info(`${id} is enabled: it stands in for what failed to start`);
    }
    all.push(...registered);
  }
  return all;
}
