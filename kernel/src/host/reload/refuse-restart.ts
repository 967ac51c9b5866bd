import { fault } from '../base/errors.js';
import type { Configuration } from '../configuration/read-configuration.js';
import type { ConfigChange } from './changes.js';

/** Reports every change that needs a restart as a mistake of the file. */
export function refuseRestart(changes: readonly ConfigChange[], { problems }: Configuration): void {
  for (const { path, needsRestart } of changes) {
    if (needsRestart) problems.add(path, fault('RESTART_NEEDED'), 'value');
  }
}
