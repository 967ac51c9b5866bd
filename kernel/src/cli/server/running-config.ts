import { createHmac, hash, randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { ConfigImage } from '../../host/reload/changes.js';
import type { Server } from '../../host/server.js';

/** A server that runs on this machine, and what it took from its configuration. */
export interface RunningConfig {
  readonly pid: number;
  /** When the configuration took effect, in ISO 8601. */
  readonly since: string;
  /** Its values are digests with the salt, so that the record holds no secrets. */
  readonly image: ConfigImage;
  readonly salt: string;
}

/**
 * Records the configuration in force of this process, for `plugboard check --diff`: in a file of
 * the folder for temporary files that only this user can read. The record is removed when the
 * process exits.
 */
export function recordConfig(server: Server): void {
  if (server.file === undefined) return;
  try {
    const folder = ownFolder();
    const path = join(folder, `${idOf(server.file)}-${process.pid}.json`);
    const salt = randomBytes(16).toString('hex');
    const record: RunningConfig = {
      pid: process.pid,
      since: new Date().toISOString(),
      salt,
      image: digested(server.image, salt),
    };
    for (const name of readdirSync(folder)) if (!isAlive(pidOf(name))) rmSync(join(folder, name), { force: true });
    if (!recorded.has(path)) process.once('exit', () => rmSync(path, { force: true }));
    recorded.add(path);
    writeFileSync(path, JSON.stringify(record), { mode: 0o600 });
  } catch (err) {
    server.log.debug({ err }, 'the configuration could not be recorded; "plugboard check --diff" does not find this server');
  }
}

const recorded = new Set<string>();

/** The servers of this user that run with a configuration file. */
export function runningConfigs(file: string): readonly RunningConfig[] {
  try {
    const folder = ownFolder();
    const names = readdirSync(folder).filter((name) => name.startsWith(`${idOf(file)}-`) && isAlive(pidOf(name)));
    return names.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as RunningConfig);
  } catch {
    return []; // no server has left a record
  }
}

/** Replaces the values of an image by digests. Keys stay readable. */
export function digested(image: ConfigImage, salt: string): ConfigImage {
  const digest = (value: unknown): unknown => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, digest(child)]));
    }
    return createHmac('sha256', salt)
      .update(JSON.stringify(value) ?? '')
      .digest('hex')
      .slice(0, 16);
  };
  const entries = Object.entries(image.entries).map(([id, entry]) => [
    id,
    { ...entry, options: digest(entry.options), files: digest(entry.files) },
  ]);
  return { entries: Object.fromEntries(entries), own: digest(image.own) as ConfigImage['own'] };
}

/** @throws Error if another user could have written to the folder. */
function ownFolder(): string {
  const { uid } = userInfo();
  const folder = join(tmpdir(), `plugboard-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  const isPrivate = stat.isDirectory() && stat.uid === uid && (stat.mode & 0o077) === 0;
  if (uid >= 0 && !isPrivate) throw new Error(`${folder} is not private`);
  return folder;
}

function idOf(file: string): string {
  return hash('sha256', realpathSync(file)).slice(0, 32);
}

/** The process whose record has that name. */
function pidOf(name: string): number {
  return Number(/-(\d+)\.json$/.exec(name)?.[1]);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
