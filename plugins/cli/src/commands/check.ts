import { relative } from 'node:path';
import { ToolSources } from '@plugboard/kernel';
import type { CommandAction, CommandTerminal } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import { table } from '../command/arguments.js';
import { CONFIG_OPTION, configFile, EXIT_CONFIG } from '../command/config-option.js';
import { reportBlocking } from '../diagnosis/block-report.js';
import { composeServer } from '../server/compose.js';
import { previewReloads } from '../server/reload-preview.js';
import { noServer } from '../server/running-config.js';
import { accessOf, channelsInMemory, serverInfo } from '../server/server-info.js';

/** Runs all phases but the start. Opens nothing. */
export const check: CommandAction = {
  summary: 'Checks the configuration and reports all mistakes',
  options: {
    config: CONFIG_OPTION,
    diff: { description: 'print what a reload of the running server would change; exit code 78 if it would be refused' },
  },
  async run(args, terminal) {
    const file = configFile(args);
    reportBlocking();
    if (args.has('diff')) return diff(file, terminal);
    const server = await composeServer({ file });
    const info = serverInfo(server);
    const { agents, models, sessions, disabled, channels } = info;
    const rows: [string, string][] = [
      ['plugins', [...new Set(server.inspection.plugins.map(({ name, version }) => `${name} ${version}`))].join(', ')],
      ['agents', agents.join(', ') || 'none'],
      ['models', models.join(', ') || 'none'],
      ['sessions', sessions],
      ['access', accessOf(info)],
      ...(channels.length > 0 ? [['channels', channels.join(', ')] as [string, string]] : []),
      ...disabled.map(({ entry, reason }): [string, string] => ['disabled', `${entry}: ${reason}`]),
      ...defaultAgent(server),
      ...laterTools(server),
    ];
    terminal.print(`${validLine(file)}\n${table(rows)}`);
    const lost = channelsInMemory(info);
    if (lost !== undefined) terminal.note(`warning: ${lost}`);
    for (const warning of server.inspection.warnings) terminal.note(`warning: ${warning}`);
    return 0;
  },
};

/** A request with a mistyped name of an agent is answered, too. */
function defaultAgent(server: HostServer): [string, string][] {
  const { defaultAgent } = (server.inspection.image.entries.runtime?.options ?? {}) as { defaultAgent?: string };
  if (defaultAgent === undefined) return [];
  return [['default', `${defaultAgent} answers a model that matches nothing; the header x-agent names who answered`]];
}

/** The sources of which an agent may name a tool that they turn out not to have. */
function laterTools(server: HostServer): [string, string][] {
  const sources = server
    .extensions(ToolSources)
    .all()
    .filter(({ value }) => value.single !== true);
  if (sources.length === 0) return [];
  return [['not checked', `tools of ${sources.map(({ name }) => name).join(', ')} (known when the server starts)`]];
}

async function diff(file: string, terminal: CommandTerminal): Promise<number> {
  const previews = await previewReloads(file);
  if (previews.length === 0) {
    await composeServer({ file });
    terminal.print(validLine(file));
    terminal.note(noServer(file));
    return 0;
  }
  const isRefused = previews.some((preview) => preview.isRefused);
  const first = isRefused ? `${validLine(file)} for a new start, but not for a reload` : validLine(file);
  terminal.print([first, ...previews.flatMap(({ lines }) => lines)].join('\n'));
  return isRefused ? EXIT_CONFIG : 0;
}

function validLine(file: string): string {
  return `${relative(process.cwd(), file)} is valid`;
}
