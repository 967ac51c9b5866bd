import type { CommandAction } from '@plugboard/kernel/contracts';
import { table } from '../command/arguments.js';
import { CONFIG_OPTION, configFile } from '../command/config-option.js';
import { composeServer } from '../server/compose.js';
import { detailsOf, routesOf } from '../server/descriptions.js';
import { serverInfo } from '../server/server-info.js';

/** Lists the loaded plugins and what they provide. */
export const plugins: CommandAction = {
  summary: 'Lists the loaded plugins, their paths, and what they provide',
  options: { config: CONFIG_OPTION, json: { description: 'print JSON' } },
  async run(args) {
    const server = await composeServer({ file: configFile(args) });
    const { plugins } = server.inspection;
    const routes = routesOf(server);
    if (args.has('json')) {
      const detailed = plugins.map((plugin) => {
        const details = detailsOf(server, plugin.entry);
        return details.length > 0 ? { ...plugin, details } : plugin;
      });
      process.stdout.write(`${JSON.stringify({ plugins: detailed, routes }, undefined, 2)}\n`);
      return 0;
    }
    const entries = plugins.map(({ entry, name, version, path, provides }) =>
      [
        `${entry}  ${name} ${version}`,
        `  ${path}`,
        ...provides.map((provided) => `  provides ${provided.point}${provided.name === entry ? '' : ` ${provided.name}`}`),
        ...detailsOf(server, entry).map((detail) => `  ${detail}`),
      ].join('\n'),
    );
    const disabled = serverInfo(server).disabled.map(({ entry, reason }) => `${entry}  disabled: ${reason}`);
    const opened = routes.map(({ method, path, plugin }): [string, string] => [`${method} ${path}`, plugin]);
    process.stdout.write(
      `${[...entries, ...disabled, ...(opened.length > 0 ? [`routes\n${table(opened)}`] : [])].join('\n\n')}\n`,
    );
    return 0;
  },
};
