import type { CommandAction } from '@plugboard/kernel/contracts';
import type { ListedToken } from '../registry/list-tokens.js';
import type { TokenRegistry } from '../registry/token-registry.js';

const HEADINGS = ['ID', 'PROJECT', 'NAME', 'TOKEN', 'STATUS', 'EXPIRES', 'LAST USED'];

export const list = (registry: TokenRegistry): CommandAction => ({
  summary: 'Lists tokens without their secrets',
  usesState: () => registry.usesState,
  options: { project: { value: 'P', description: 'only tokens of this project' }, json: { description: 'print JSON' } },
  async run(args, terminal) {
    const tokens = await registry.list(args.text('project'));
    if (args.has('json')) terminal.print(JSON.stringify({ tokens }, undefined, 2));
    else if (tokens.length === 0) terminal.print('There are no tokens. Create one with "plugboard token create".');
    else terminal.print(formatTable([HEADINGS, ...tokens.map(row)]));
    return 0;
  },
});

function row({ id, project, name, hint, status, expiresAt, lastUsedAt }: ListedToken): readonly string[] {
  return [
    id,
    project,
    name,
    hint ?? '(configuration)',
    status,
    formatMinute(expiresAt) ?? 'never',
    formatMinute(lastUsedAt) ?? 'never',
  ];
}

/** `2027-01-31 00:00`, in UTC. */
function formatMinute(time: string | undefined): string | undefined {
  return time?.slice(0, 16).replace('T', ' ');
}

function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
