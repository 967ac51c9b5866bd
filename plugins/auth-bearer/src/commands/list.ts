import type { CommandAction } from '@plugboard/kernel';
import type { ListedToken } from '../list-tokens.js';
import type { TokenBook } from '../token-book.js';

const HEADINGS = ['ID', 'PROJECT', 'NAME', 'TOKEN', 'STATUS', 'EXPIRES', 'LAST USED'];

export const list = (book: TokenBook): CommandAction => ({
  summary: 'Shows which tokens there are; never the tokens themselves',
  options: { project: { value: 'P', description: 'only those of one project' }, json: { description: 'for programs' } },
  async run(args, terminal) {
    const tokens = await book.list(args.text('project'));
    if (args.has('json')) terminal.print(JSON.stringify({ tokens }, undefined, 2));
    else if (tokens.length === 0) terminal.print('There are no tokens. plugboard token create makes one.');
    else terminal.print(columns([HEADINGS, ...tokens.map(row)]));
    return 0;
  },
});

function row({ id, project, name, hint, status, expiresAt, lastUsedAt }: ListedToken): readonly string[] {
  return [id, project, name, hint ?? 'in the configuration', status, minute(expiresAt) ?? 'never', minute(lastUsedAt) ?? 'never'];
}

/** `2027-01-31 00:00`, in UTC. */
function minute(time: string | undefined): string | undefined {
  return time?.slice(0, 16).replace('T', ' ');
}

function columns(rows: readonly (readonly string[])[]): string {
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
