import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The processes that this one has started and that still run, by their ids. */
export function childrenOf(parent = process.pid): readonly number[] {
  return (existsSync('/proc/self/stat') ? fromProc() : fromPs()).flatMap(([child, its]) => (its === parent ? [child] : []));
}

type Row = readonly [pid: number, parent: number];

function fromProc(): readonly Row[] {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.flatMap((id) => {
    try {
      // The name is in brackets, and may itself contain blanks and brackets.
      const fields = readFileSync(`/proc/${id}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ');
      return [[Number(id), Number(fields[1])]];
    } catch {
      return []; // it has ended meanwhile
    }
  });
}

function fromPs(): readonly Row[] {
  const { stdout, pid } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  return rows.flatMap(([child, its]) => (child === undefined || its === undefined || child === pid ? [] : [[child, its]]));
}
