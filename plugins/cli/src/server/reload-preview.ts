import { dirname } from 'node:path';
import { type ConfigImage, changesBetween } from '@plugboard/kernel/internal';
import { COST_OF_PREFIX, coldSessions } from './cold-sessions.js';
import { composeServer } from './compose.js';
import { describeChange } from './describe-change.js';
import { digested, environmentOf, type RunningConfig, runningConfigs } from './running-config.js';

/** What a reload of a running server would do. */
export interface ReloadPreview {
  readonly server: RunningConfig;
  /** What it would change, for people. */
  readonly lines: readonly string[];
  /** The lines about the changes alone. */
  readonly changes: readonly string[];
  /** The lines about plugins whose code is another one on the disk. */
  readonly notes: readonly string[];
  /** Whether the server would refuse the file, because something cannot change while it runs. */
  readonly isRefused: boolean;
}

/**
 * Compares a configuration file with the configurations that the running servers of this file use.
 * The file is read with the environment of each server, where this process may read it.
 *
 * @returns one preview per server.
 * @throws ConfigError if the file has mistakes.
 */
export async function previewReloads(file: string): Promise<readonly ReloadPreview[]> {
  const previews: ReloadPreview[] = [];
  for (const running of runningConfigs(file)) previews.push(await previewReload(file, running));
  return previews;
}

async function previewReload(file: string, server: RunningConfig): Promise<ReloadPreview> {
  const { pid, since, salt, image: inForce } = server;
  const { inspection } = await composeServer({ file, env: environmentOf(pid) ?? process.env });
  const after = digested(inspection.image, salt);
  const cold = coldSessions({ before: inForce, after, values: inspection.image, folder: dirname(file) });
  const updated = updatedPlugins(inForce, after).map((line) => `  ${line}`);
  const notes = updated.length === 0 ? [] : ['a reload does not load these updates; restart the server to use them', ...updated];
  const costs = cold.length === 0 ? [] : [COST_OF_PREFIX, ...cold];
  const all = changesBetween(inForce, after);
  const fixed = all.filter(({ needsRestart }) => needsRestart);
  const isRefused = fixed.length > 0;
  const changes = (isRefused ? fixed : all).map((change) => `  ${describeChange(change)}`);
  const effect = isRefused
    ? 'a reload would be refused, because these cannot change while the server runs; restart it'
    : `a reload would change${changes.length === 0 ? ' nothing' : ''}`;
  return {
    server,
    lines: [`server ${pid}, configured ${since}: ${effect}`, ...changes, ...notes, ...costs],
    changes,
    notes,
    isRefused,
  };
}

/** The entries whose plugin was changed on the disk since the server loaded it. */
function updatedPlugins(before: ConfigImage, after: ConfigImage): readonly string[] {
  return Object.entries(after.entries).flatMap(([id, { plugin, version, modified }]) => {
    const running = before.entries[id];
    if (running?.plugin !== plugin) return [];
    if (running.version !== version) return [`${id}: version ${version} is installed, ${running.version} runs`];
    return running.modified === modified ? [] : [`${id}: its module has changed since the server loaded it`];
  });
}
