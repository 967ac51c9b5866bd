import { isDeepStrictEqual } from 'node:util';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import type { Change } from '../replay/compare.js';

/** Characters of a value that are shown, and of what is the same before its first difference. */
const SHOWN = 72;
const CONTEXT = 16;

/**
 * The changes of a turn for people: one line for what it was, and one for what it is. Of tools the
 * names of those that changed.
 */
export function changeLines(changes: readonly Change[]): readonly string[] {
  return changes.flatMap(({ kind, step, before, after }) => {
    if (kind === 'tools') return `  step ${step}  tools     ${changedTools(before as Tools, after as Tools)}`;
    const [was, is] = excerpts(textOf(before), textOf(after));
    return [`  step ${step}  ${kind.padEnd(8)}  - ${was}`, `${' '.repeat(9 + String(step).length)}${' '.repeat(8)}  + ${is}`];
  });
}

type Tools = readonly ToolDeclaration[];

/** `added a, b; removed c; changed d` */
function changedTools(before: Tools, after: Tools): string {
  const was = byName(before);
  const is = byName(after);
  const names = {
    added: [...is.keys()].filter((name) => !was.has(name)),
    removed: [...was.keys()].filter((name) => !is.has(name)),
    changed: [...is.keys()].filter((name) => was.has(name) && !isDeepStrictEqual(was.get(name), is.get(name))),
  };
  const parts = Object.entries(names).filter(([, some]) => some.length > 0);
  return oneLine(parts.map(([what, some]) => `${what} ${some.join(', ')}`).join('; '));
}

/** Values of JSON: the order of their keys means nothing. */
function byName(tools: Tools): ReadonlyMap<string, unknown> {
  return new Map(tools.map((tool) => [tool.name, JSON.parse(JSON.stringify(tool))]));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Both texts around their first difference. */
function excerpts(before: string, after: string): [string, string] {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  const start = Math.max(0, same - CONTEXT);
  return [excerpt(before, start), excerpt(after, start)];
}

function excerpt(text: string, start: number): string {
  const shown = oneLine(text.slice(start, start + SHOWN));
  return `${start > 0 ? '…' : ''}${shown}${start + SHOWN < text.length ? '…' : ''}`;
}

/** What a stranger wrote, without characters that a terminal obeys. */
function oneLine(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ');
}
