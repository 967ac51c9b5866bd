import { spawnSync } from 'node:child_process';

/** The processes that this one has started and that still run, by their ids. */
export function childrenOf(parent = process.pid): readonly number[] {
  const { stdout, pid } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  return rows.flatMap(([child, its]) => (its === parent && child !== undefined && child !== pid ? [child] : []));
}
