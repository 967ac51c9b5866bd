import { relative } from 'node:path';
import { compose } from '../host/kernel.js';
import { layout } from '../layout.js';
import { table } from './arguments.js';
import { CONFIG_OPTION, type CommandAction, configFile } from './command.js';
import { factsOf } from './facts.js';

/** Everything but the start: loads plugins, validates, registers, orders. Opens nothing. */
export const check: CommandAction = {
  summary: 'Tells whether a configuration can be run, and everything that is wrong with it',
  options: { config: CONFIG_OPTION },
  async run(args) {
    const composition = await compose({ file: configFile(args), layout });
    const { agents, models, sessions, auth, withdrawn } = factsOf(composition);
    const rows: [string, string][] = [
      ['plugins', [...new Set(composition.plugins.map(({ name, version }) => `${name} ${version}`))].join(', ')],
      ['agents', agents.join(', ') || 'none'],
      ['models', models.join(', ') || 'none'],
      ['sessions', sessions],
      ['access', auth.length > 0 ? `with a credential (${auth.join(', ')})` : 'open'],
      ...withdrawn.map(({ entry, reason }): [string, string] => ['withdrawn', `${entry}: ${reason}`]),
    ];
    process.stdout.write(`${relative(process.cwd(), composition.file)} can be run\n${table(rows)}\n`);
    return 0;
  },
};
