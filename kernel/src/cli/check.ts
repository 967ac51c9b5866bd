import { relative } from 'node:path';
import { compose } from '../host/compose.js';
import { layout } from '../layout.js';
import { table } from './arguments.js';
import { CONFIG_OPTION, type CommandAction, configFile } from './command.js';
import { serverInfo } from './server-info.js';

/** Runs all phases but the start: loads plugins, validates the file, registers, derives the order. Opens nothing. */
export const check: CommandAction = {
  summary: 'Checks the configuration and reports all mistakes',
  options: { config: CONFIG_OPTION },
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
    process.stdout.write(`${relative(process.cwd(), server.file ?? '')} is valid\n${table(rows)}\n`);
    for (const warning of server.warnings) terminal.note(`warning: ${warning}`);
    return 0;
  },
};
