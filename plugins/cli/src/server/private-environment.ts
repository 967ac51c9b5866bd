import type { Environment, HostServer } from '@plugboard/kernel/internal';

/** Variables that the process and its children need, even if an option uses them. */
const KEPT =
  /^(HOME|LOGNAME|PATH|PWD|SHELL|TERM|USER|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|NODE_\w+|XDG_\w+|APPDATA|LOCALAPPDATA|PROGRAMFILES|SYSTEMROOT|USERPROFILE)$/i;

/**
 * A copy of the process's environment, for the variables of a configuration. The process's own
 * loses the secrets (S-45).
 *
 * 1. `variables` are what the configuration is read with, now and by every reload.
 * 2. Once it is read, `removeSecrets` deletes the variables that hold secrets from `process.env`.
 *    Plugins, the processes that they start, and diagnostic reports no longer see them.
 *
 * On Linux, a process of the same user can still read the environment that this one was started
 * with, in `/proc/<pid>/environ`.
 */
export class PrivateEnvironment {
  readonly variables: Environment = { ...process.env };

  removeSecrets({ inspection }: HostServer): void {
    for (const name of inspection.secretVariables) if (!KEPT.test(name)) delete process.env[name];
  }
}
