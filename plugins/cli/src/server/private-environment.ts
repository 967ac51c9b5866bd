import type { HostServer } from '@plugboard/kernel/internal';

/** Variables that the process and its children need, even if an option uses them. */
const KEPT =
  /^(HOME|LOGNAME|PATH|PWD|SHELL|TERM|USER|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|NODE_\w+|XDG_\w+|APPDATA|LOCALAPPDATA|PROGRAMFILES|SYSTEMROOT|USERPROFILE)$/i;

/**
 * Deletes the variables that hold secrets from `process.env` (S-45): plugins, the processes that
 * they start, and diagnostic reports no longer see them. The server reads its configuration with a
 * copy of the environment, now and by every reload.
 *
 * On Linux, a process of the same user can still read the environment that this one was started
 * with, in `/proc/<pid>/environ`.
 */
export function removeSecrets({ inspection }: HostServer): void {
  for (const name of inspection.secretVariables) if (!KEPT.test(name)) delete process.env[name];
}
