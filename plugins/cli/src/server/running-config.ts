import { createHmac, hash, randomBytes } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import type { ConfigImage, Environment, HostServer } from '@plugboard/kernel/internal';
import { serverInfo } from './server-info.js';

/** A server that runs on this machine, and what it took from its configuration. */
export interface RunningConfig {
  readonly pid: number;
  /** Tells the process from a later one with the same id, where the system says when one began. */
  readonly birth?: string | undefined;
  /** When the configuration took effect, in ISO 8601. */
  readonly since: string;
  /** Its values are digests with the salt, so that the record holds no secrets. */
  readonly image: ConfigImage;
  readonly salt: string;
  /** Where it listens. */
  readonly addresses: readonly string[];
  /** The number of reloads since the start, and what became of the last one. */
  readonly reloads: number;
  readonly reload?: ReloadReport | undefined;
  /** The socket on which it answers operators. Absent if it has none. */
  readonly socket?: string | undefined;
}

/** What became of a reload. Only an applied one changes what the server uses. */
export interface ReloadReport {
  readonly outcome: 'applied' | 'unchanged' | 'refused';
  /** Why it was refused: the lines of the log, without secrets. */
  readonly reasons?: readonly string[] | undefined;
}

/** Says that a file has no running server. */
export function noServer(file: string): string {
  const cure = 'run this on the machine of the server, as its user or as root, with the same TMPDIR';
  return `no running server of ${file} was found; ${cure}`;
}

/** Where systemd makes folders for `RuntimeDirectory=plugboard/NAME`. Only root can add to it. */
const SERVICES = '/run/plugboard';

/**
 * Records the configuration that this process uses, for `plugboard check --diff` and `plugboard
 * reload`: in the runtime folder that systemd gave it, else in a folder of this user among the
 * temporary files. Other users cannot read the record. It is removed when the process exits.
 *
 * @param reload the one after which it is recorded; absent after the start.
 * @param openSocket opens the socket of the server for operators, in a folder. Called once.
 */
export function recordConfig(
  server: HostServer,
  reload?: ReloadReport,
  openSocket?: (folder: string) => string | undefined,
): void {
  if (server.inspection.file === undefined) return;
  if (reload !== undefined) reloads++;
  if (reload === undefined || reload.outcome === 'applied') since = new Date().toISOString();
  try {
    const folder = runtimeFolder() ?? temporaryFolder();
    if (folder === temporaryFolder()) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      requirePrivate(folder);
    }
    if (openSocket) socket = openSocket(folder);
    const path = join(folder, `${idOf(server.inspection.file)}-${process.pid}.json`);
    const salt = randomBytes(16).toString('hex');
    const record: RunningConfig = {
      pid: process.pid,
      birth: birthOf(process.pid),
      since,
      salt,
      image: digested(server.inspection.image, salt),
      addresses: serverInfo(server).addresses,
      reloads,
      reload,
      socket,
    };
    const stale = readdirSync(folder).filter((name) => isRecord(name) && !isAlive(pidOf(name)));
    for (const name of stale) removeRecord(join(folder, name));
    if (!recorded.has(path)) process.once('exit', () => rmSync(path, { force: true }));
    recorded.add(path);
    writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch (err) {
    server.log.debug(
      { err },
      'the configuration could not be recorded; "plugboard reload" and "plugboard check --diff" do not find this server',
    );
  }
}

/** Removes the record of a process that was killed, and its socket. */
function removeRecord(path: string): void {
  try {
    const { socket } = JSON.parse(readFileSync(path, 'utf8')) as RunningConfig;
    if (socket !== undefined) removeSocket(socket);
  } finally {
    rmSync(path, { force: true });
  }
}

/** Removes a socket and its folder, if they are there. */
export function removeSocket(path: string): void {
  try {
    rmSync(path, { force: true });
    rmdirSync(dirname(path));
  } catch {
    // the folder is gone, or has something else in it
  }
}

const recorded = new Set<string>();
let socket: string | undefined;
let since = '';
let reloads = 0;

/** The servers on this machine with a configuration file, as far as this user can see them. */
export function runningConfigs(file: string): readonly RunningConfig[] {
  const services = namesIn(SERVICES).map((name) => join(SERVICES, name));
  const folders = new Set([temporaryFolder(), runtimeFolder() ?? temporaryFolder(), ...services]);
  return [...folders].flatMap((folder) => runningConfigsIn(folder, file));
}

function runningConfigsIn(folder: string, file: string): readonly RunningConfig[] {
  try {
    if (folder === temporaryFolder()) requirePrivate(folder);
    const id = idOf(file);
    const names = readdirSync(folder).filter((name) => isRecord(name) && name.startsWith(`${id}-`) && isAlive(pidOf(name)));
    const records = names.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as RunningConfig);
    return records.filter(({ pid, birth }) => birth === birthOf(pid));
  } catch {
    return []; // no server has left a record that this user can read
  }
}

/** The environment that a process was started with, if this user may read it in `/proc`. */
export function environmentOf(pid: number): Environment | undefined {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
    return Object.fromEntries(variables.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]));
  } catch {
    return undefined;
  }
}

/** When a process began, in ticks since the boot. Undefined on systems without `/proc`. */
function birthOf(pid: number): string | undefined {
  try {
    // The name in parentheses may hold spaces. The time is the 22nd field of the line.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19];
  } catch {
    return undefined;
  }
}

/** Replaces the values of an image by digests. Keys and the lengths of lists stay readable. */
export function digested(image: ConfigImage, salt: string): ConfigImage {
  const digest = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(digest);
    if (typeof value === 'object' && value !== null) {
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

/** The folder that systemd made for this service. */
function runtimeFolder(): string | undefined {
  return process.env.RUNTIME_DIRECTORY?.split(':')[0] || undefined;
}

function temporaryFolder(): string {
  return join(tmpdir(), `plugboard-${userInfo().uid}`);
}

/** @throws Error if another user could have written to the folder. */
function requirePrivate(folder: string): void {
  const { uid } = userInfo();
  const stat = lstatSync(folder);
  const isPrivate = stat.isDirectory() && stat.uid === uid && (stat.mode & 0o022) === 0;
  if (uid >= 0 && !isPrivate) throw new Error(`${folder} is not private`);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function idOf(file: string): string {
  return hash('sha256', realpathSync(file)).slice(0, 32);
}

function isRecord(name: string): boolean {
  return /^[0-9a-f]{32}-\d+\.json$/.test(name);
}

/** The process whose record has that name. */
function pidOf(name: string): number {
  return Number(/-(\d+)\.json$/.exec(name)?.[1]);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
