import { compose } from '../host/kernel.js';
import { layout } from '../layout.js';
import { table } from './arguments.js';
import { CONFIG_OPTION, type CommandAction, configFile } from './command.js';
import { detailsOf, routesOf } from './descriptions.js';
import { factsOf } from './facts.js';

/** What is loaded, and what each plugin provides. */
export const plugins: CommandAction = {
  summary: 'Shows what is loaded, from where, and what each plugin provides',
  options: { config: CONFIG_OPTION, json: { description: 'for programs' } },
  async run(args) {
    const composition = await compose({ file: configFile(args), layout });
    const { plugins } = composition;
    const routes = routesOf(composition);
    if (args.has('json')) {
      process.stdout.write(`${JSON.stringify({ plugins, routes }, undefined, 2)}\n`);
      return 0;
    }
    const entries = plugins.map(({ entry, name, version, path, provides }) =>
      [
        `${entry}  ${name} ${version}`,
        `  ${path}`,
        ...provides.map((provided) => `  provides ${provided.point}${provided.name === entry ? '' : ` ${provided.name}`}`),
        ...detailsOf(composition, entry).map((detail) => `  ${detail}`),
      ].join('\n'),
    );
    const withdrawn = factsOf(composition).withdrawn.map(({ entry, reason }) => `${entry}  withdrawn: ${reason}`);
    const opened = routes.map(({ method, path, plugin }): [string, string] => [`${method} ${path}`, plugin]);
    process.stdout.write(
      `${[...entries, ...withdrawn, ...(opened.length > 0 ? [`routes\n${table(opened)}`] : [])].join('\n\n')}\n`,
    );
    return 0;
  },
};
