import { setTimeout as sleep } from 'node:timers/promises';
import { type CommandAction, CommandError } from '@plugboard/kernel/contracts';
import { CONFIG_OPTION, configFile, EXIT_CONFIG } from '../command/config-option.js';
import { previewReloads } from '../server/reload-preview.js';
import { noServer, type ReloadReport, type RunningConfig, runningConfigs } from '../server/running-config.js';

/** Milliseconds that a server has to report the outcome: more than an entry has to start. */
const MAX_RELOAD_TIME = 30_000;
/** Milliseconds between looks at the record of a server. */
const INTERVAL = 50;

const OUTCOMES: Readonly<Record<ReloadReport['outcome'], string>> = {
  applied: 'the changed configuration was applied',
  unchanged:
    'the configuration has not changed; plugins read files of their own again, such as tokens, but no code is loaded again',
  refused: 'the changed configuration was refused, and the previous one stays in effect',
};

/** Checks the file, sends SIGHUP to its servers, and waits for the outcome. */
export const reload: CommandAction = {
  summary: 'Reloads the configuration of the running server',
  options: { config: CONFIG_OPTION },
  async run(args, terminal) {
    const file = configFile(args);
    const previews = await previewReloads(file);
    if (previews.length === 0) throw new CommandError(noServer(file));
    const refused = previews.filter(({ isRefused }) => isRefused);
    if (refused.length > 0) {
      terminal.note(refused.flatMap(({ lines }) => lines).join('\n'));
      return EXIT_CONFIG;
    }
    let code = 0;
    for (const { server, changes, notes } of previews) {
      process.kill(server.pid, 'SIGHUP');
      const { outcome, reasons = [] } = await reportOf(file, server);
      const details = outcome === 'applied' ? changes : reasons.map((reason) => `  ${reason}`);
      const text = [`server ${server.pid}: ${OUTCOMES[outcome]}`, ...details, ...notes].join('\n');
      if (outcome === 'refused') {
        terminal.note(text);
        code = EXIT_CONFIG;
      } else terminal.print(text);
    }
    return code;
  },
};

/** Waits until the server has recorded a reload. @throws CommandError */
async function reportOf(file: string, { pid, reloads }: RunningConfig): Promise<ReloadReport> {
  for (let waited = 0; waited < MAX_RELOAD_TIME; waited += INTERVAL) {
    const now = runningConfigs(file).find((server) => server.pid === pid);
    if (now?.reload !== undefined && now.reloads > reloads) return now.reload;
    await sleep(INTERVAL);
  }
  throw new CommandError(`server ${pid} has not reloaded within ${MAX_RELOAD_TIME / 1000} s; its log says why`);
}
