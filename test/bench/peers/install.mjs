// Installs a peer into a cache folder outside the workspace, at the versions of its lock.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'plugboard-bench');
const MINUTES = 5;

/** @returns the folder of an installed peer. @throws Error with what npm said. */
export async function install(name) {
  const source = fileURLToPath(new URL(name, import.meta.url));
  const lock = readFileSync(join(source, 'package-lock.json'));
  const folder = join(CACHE, `${name}-${createHash('sha256').update(lock).digest('hex').slice(0, 12)}`);
  if (!existsSync(folder)) {
    // Under another name until it is complete, so that a run that was stopped leaves nothing half.
    const begun = `${folder}.${process.pid}`;
    mkdirSync(begun, { recursive: true });
    cpSync(source, begun, { recursive: true });
    try {
      await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: begun, timeout: MINUTES * 60_000 });
    } catch (error) {
      rmSync(begun, { recursive: true, force: true });
      throw new Error(`npm ci failed: ${lastLine(error.stderr || error.message)}`);
    }
    renameSync(begun, folder);
  }
  cpSync(source, folder, { recursive: true });
  return folder;
}

function lastLine(text) {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !/A complete log/.test(line));
  return lines.at(-1)?.slice(0, 300) ?? '';
}
