import { StartError } from '../host/errors.js';
import { compose } from '../host/kernel.js';
import { layout } from '../layout.js';
import { Banner } from './banner.js';
import { type CliCommand, CONFIG_OPTION, configFile } from './command.js';
import { Ending } from './ending.js';
import { factsOf } from './facts.js';

/** Milliseconds until the banner tells what is being waited for. A little less than the second that it promises. */
const PATIENCE = 800;

/** Runs the server until it is told to stop. */
export const start: CliCommand = {
  summary: 'Runs the server until it is told to stop',
  options: { config: CONFIG_OPTION },
  async run(args) {
    // Timers of the host and of plugins keep no process alive; a server that waits for something is not at its end.
    setInterval(() => undefined, 2 ** 30);
    const composition = await compose({ file: configFile(args), layout });
    const ending = new Ending(composition);
    const banner = new Banner(composition, (text) => process.stdout.write(text));
    const slow = setTimeout(() => banner.waiting(), PATIENCE);
    try {
      await composition.start();
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      for (const failure of error.failures) composition.log.fatal({ err: failure.cause }, failure.message);
      return ending.begun ? ending.code : 1;
    } finally {
      clearTimeout(slow);
    }
    banner.ready();
    if (factsOf(composition).auth.length === 0) {
      composition.log.warn({ log: 'audit' }, 'the server is open: whoever reaches its address may use every agent and model');
    }
    return ending.code;
  },
};
