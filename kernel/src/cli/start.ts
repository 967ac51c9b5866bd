import { StartError } from '../host/base/errors.js';
import { compose } from '../host/compose.js';
import { logWritten } from '../host/log/log.js';
import { layout } from '../layout.js';
import { Banner } from './banner.js';
import { CONFIG_OPTION, type CommandAction, configFile } from './command.js';
import { Shutdown } from './shutdown.js';

/** Milliseconds of the process's life after which the banner tells what is being waited for. A little less than the second that it promises. */
const PATIENCE = 800;

/** Runs the server until it is told to stop. */
export const start: CommandAction = {
  summary: 'Runs the server until it is told to stop',
  options: { config: CONFIG_OPTION },
  async run(args) {
    // Timers of the host and of plugins keep no process alive; a server that waits for something is not at its end.
    setInterval(() => undefined, 2 ** 30);
    const server = await compose({ file: configFile(args), layout });
    const shutdown = new Shutdown(server);
    const banner = new Banner(server, (text) => process.stdout.write(text));
    const slow = setTimeout(() => banner.waiting(), Math.max(0, PATIENCE - performance.now()));
    try {
      await server.start();
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      for (const failure of error.failures) server.log.fatal({ err: failure.cause }, failure.message);
      return shutdown.begun ? shutdown.code : 1;
    } finally {
      clearTimeout(slow);
    }
    await logWritten(); // what was logged of the start stands there before a person is told that it is over
    banner.ready();
    return shutdown.code;
  },
};
