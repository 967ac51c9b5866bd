import { type Clock, type IdSource, systemClock, systemIds } from './base/ambient.js';
import { type ReadOptions, readConfiguration } from './configuration/read-configuration.js';
import { HostServer } from './host-server.js';
import { StatusBoard } from './lifecycle/status-board.js';
import type { LogSink } from './log/log.js';
import { createServerLog } from './log/server-log.js';
import { parseSize } from './options/size.js';
import { Budgets } from './plugin/budgets.js';
import { registerEntries } from './registration/register-entries.js';
import { Revision } from './registration/revision.js';

export interface ComposeOptions extends ReadOptions {
  readonly clock?: Clock;
  readonly ids?: IdSource;
  /** Receives log lines. By default they go to standard error. */
  readonly logTo?: LogSink;
  /** Leaves out entries with mistakes instead of throwing. Such a server cannot be started. */
  readonly partial?: boolean;
}

/**
 * Composes a server from a configuration file. No phase has side effects; `start` of the result is
 * the next phase.
 *
 * | phase | what happens |
 * | --- | --- |
 * | read | the file and its `.env` are read, variables are replaced, optional entries may be disabled |
 * | load | the plugins that the file uses are imported, and no others |
 * | configure | options are validated with the plugins' schemas, completed with defaults, and frozen; plugins run their `check` |
 * | register | plugins contribute to extension points and declare which they read |
 * | order | the start order follows from that |
 *
 * A mistake does not end a phase: it only excludes its entry from the next ones, so that all
 * mistakes are found together.
 *
 * @throws ConfigError with all mistakes; with `partial` only if the file cannot be read.
 */
export async function compose(options: ComposeOptions): Promise<HostServer> {
  const { clock = systemClock, ids = systemIds, logTo, partial = false, ...readOptions } = options;
  const configuration = await readConfiguration(readOptions);
  const { contents, secrets, credentials, problems, resolvePath } = configuration;

  const status = new StatusBoard(contents.literals);
  const serverLog = createServerLog({
    level: contents.log.level,
    buffer: contents.log.buffer === undefined ? undefined : parseSize(contents.log.buffer),
    auditFile: contents.log.audit === undefined ? undefined : resolvePath(contents.log.audit),
    secrets,
    credentials,
    clock,
    sink: logTo,
  });
  const { log } = serverLog;
  const budgets = new Budgets(clock, log);
  for (const budget of serverLog.budgets) budgets.add(budget);
  const { diagnosis } = options;
  const registration = { host: status, log, clock, ids, budgets, state: options.layout.state, resolvePath, diagnosis };

  const revision = new Revision(1, configuration);
  registerEntries(revision, registration);
  const mistakes = problems.error?.redacted(serverLog.redact);
  if (mistakes && !partial) throw mistakes;
  return new HostServer({ readOptions, revision, registration, serverLog, status, mistakes });
}
