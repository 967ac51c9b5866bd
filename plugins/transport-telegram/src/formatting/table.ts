import { formatInline } from './inline.js';

const MAX_PADDING = 40;

/** Whether a table begins at a line: a header with `|`, and below it a line of dashes. */
export function isTableStart(lines: readonly string[], at: number): boolean {
  return (lines[at] ?? '').includes('|') && isDelimiter(lines[at + 1] ?? '');
}

/** Lays out a table in columns. @returns its text, and the line behind it. */
export function readTable(lines: readonly string[], start: number): { readonly text: string; readonly next: number } {
  const rows = [cellsOf(lines[start] ?? '')];
  let next = start + 2;
  for (; (lines[next] ?? '').includes('|'); next++) rows.push(cellsOf(lines[next] ?? ''));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, widthOf(cell));
  }
  const [header = [], ...body] = rows;
  const layOut = (row: readonly string[]) =>
    row
      .map((cell, column) => pad(cell, widths[column] ?? 0))
      .join(' | ')
      .trimEnd();
  const rule = header.map((_, column) => '-'.repeat(Math.min(widths[column] ?? 0, MAX_PADDING))).join('-+-');
  return { text: [layOut(header), rule, ...body.map(layOut)].join('\n'), next };
}

function isDelimiter(line: string): boolean {
  const cells = cellsOf(line);
  return line.includes('-') && cells.length > 0 && cells.every((cell) => /^:?-+:?$/.test(cell));
}

/** Cells without their formatting, which a fixed-width block cannot show. */
function cellsOf(line: string): readonly string[] {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return inner.split('|').map((cell) => formatInline(cell.trim()).text.replaceAll('\n', ' '));
}

function pad(cell: string, width: number): string {
  return cell + ' '.repeat(Math.max(0, Math.min(width, MAX_PADDING) - widthOf(cell)));
}

/** In code points: wide characters count once. */
function widthOf(cell: string): number {
  return [...cell].length;
}
