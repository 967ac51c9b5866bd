import { flushCompileCache } from 'node:module';
import { relative } from 'node:path';
import { StartError } from '@plugboard/kernel';
import type { CommandAction } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import { logWritten, systemClock } from '@plugboard/kernel/internal';
import { CONFIG_OPTION, configFile } from '../command/config-option.js';
import { reportBlocking } from '../diagnosis/block-report.js';
import { Banner } from '../running/banner.js';
import { BlockedSessions } from '../running/blocked-sessions.js';
import { FileWatch } from '../running/file-watch.js';
import { HangUps } from '../running/hang-ups.js';
import { openOperatorSocket } from '../running/operator-socket.js';
import { Reloads } from '../running/reloads.js';
import { Shutdown } from '../running/shutdown.js';
import { endWhenBlocked } from '../running/watchdog.js';
import { boundYoungGeneration } from '../running/young-generation.js';
import { composeServer } from '../server/compose.js';
import { removeSecrets } from '../server/private-environment.js';
import { recordConfig } from '../server/running-config.js';

/**
 * Milliseconds that the entries may take to start before the banner says what the start waits for.
 * Loading their modules is not part of it.
 */
const SLOW_START = 1_000;

const CLOSED = 'sessions are closed because work on them held up the server; delete them, or take them out of the file';

/** Runs the server until it is stopped. */
export const start: CommandAction = {
  summary: 'Runs the server until it is stopped',
  options: {
    config: CONFIG_OPTION,
    watch: { description: 'reload the configuration when one of its files changes, as on SIGHUP' },
  },
  async run(args) {
    // Timers of the host and of plugins do not keep the process alive, but a waiting server must
    // stay.
    setInterval(() => undefined, 2 ** 30);
    boundYoungGeneration();
    const endReport = reportBlocking();
    const hangUps = new HangUps();
    const file = configFile(args);
    const blocked = new BlockedSessions(file);
    const server = await composeServer({ file, env: { ...process.env } });
    removeSecrets(server);
    const shutdown = new Shutdown(server);
    const reloads = new Reloads(server, () => removeSecrets(server));
    hangUps.handleWith({ reload: () => reloads.request('SIGHUP'), stop: () => shutdown.onTerminalClosed() });
    const banner = new Banner(server, (text) => process.stdout.write(text), process.stdout.isTTY);
    const closed = blocked.close();
    if (closed.length > 0) server.log.error({ file: blocked.file, conversations: closed }, CLOSED);
    blocked.follow();
    const slow = setTimeout(() => banner.waiting(), SLOW_START);
    try {
      await server.start();
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      for (const { cause, message } of error.failures) server.log.fatal(isExplained(cause) ? {} : { err: cause }, message);
      return shutdown.reason === undefined ? 1 : shutdown.exitCode;
    } finally {
      clearTimeout(slow);
    }
    endReport();
    endWhenBlocked(blocked.file);
    await logWritten(); // the log of the start comes before the banner
    banner.ready();
    recordConfig(server, undefined, (folder) => openOperatorSocket(server, folder));
    flushCompileCache(); // a process that is killed later writes nothing
    if (args.has('watch')) await watch(server, reloads);
    return shutdown.exitCode;
  },
};

/**
 * Whether a plugin says itself what was refused, such as a port: stacks would hide the message. It
 * throws an error class of its own with a code, or wraps an error with a code.
 */
function isExplained(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { cause, name } = error;
  if (name !== 'Error' && 'code' in error && !String(error.code).startsWith('ERR_')) return true;
  return cause instanceof Error && 'code' in cause && !(cause instanceof TypeError || cause instanceof RangeError);
}

/** Reloads the server when a file of its configuration changes. */
async function watch(server: HostServer, reloads: Reloads): Promise<void> {
  const files = () => server.inspection.files;
  await new FileWatch({ files, clock: systemClock, onChange: () => reloads.request('a file has changed') }).start();
  server.log.info({ files: files().map((file) => relative(process.cwd(), file)) }, 'watching the files of the configuration');
}
