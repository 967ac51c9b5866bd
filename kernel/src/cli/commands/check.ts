import { relative } from 'node:path';
import { compose } from '../../host/compose.js';
import { layout } from '../../layout.js';
import { table } from '../command/arguments.js';
import { CONFIG_OPTION, type CommandAction, configFile, EXIT_CONFIG } from '../command/command.js';
import { previewReload } from '../server/reload-preview.js';
import { serverInfo } from '../server/server-info.js';

/**
 * Runs all phases but the start: loads plugins, validates the file, registers, derives the order.
 * Opens nothing.
 */
export const check: CommandAction = {
  summary: 'Checks the configuration and reports all mistakes',
  options: {
    config: CONFIG_OPTION,
    diff: { description: 'print what a reload of the running server would change' },
  },
  async run(args, terminal) {
    const server = await compose({ file: configFile(args), layout });
    const { agents, models, sessions, auth, disabled } = serverInfo(server);
    const rows: [string, string][] = [
      ['plugins', [...new Set(server.plugins.map(({ name, version }) => `${name} ${version}`))].join(', ')],
      ['agents', agents.join(', ') || 'none'],
      ['models', models.join(', ') || 'none'],
      ['sessions', sessions],
      ['access', auth.length > 0 ? `with a credential (${auth.join(', ')})` : 'open'],
      ...disabled.map(({ entry, reason }): [string, string] => ['disabled', `${entry}: ${reason}`]),
    ];
    const valid = `${relative(process.cwd(), server.file ?? '')} is valid`;
    if (args.has('diff')) {
      const { lines, isRefused } = previewReload(server);
      process.stdout.write(`${[valid, ...lines].join('\n')}\n`);
      return isRefused ? EXIT_CONFIG : 0;
    }
    process.stdout.write(`${valid}\n${table(rows)}\n`);
    for (const warning of server.warnings) terminal.note(`warning: ${warning}`);
    return 0;
  },
};
