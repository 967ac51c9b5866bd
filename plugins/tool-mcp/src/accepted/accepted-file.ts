import { randomUUID } from 'node:crypto';
import { chownSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { corruptFile, unreadableFile, unwritableFile } from '../errors/errors.js';

const VERSION = 1;

/** What was accepted of one MCP server. */
export interface AcceptedServer {
  /** The authorization server that its secret may go to. */
  readonly issuer?: string | undefined;
  /** Its tools: digests by name. */
  readonly tools?: ReadonlyMap<string, string> | undefined;
}

/**
 * The file with what was accepted of MCP servers: issuers, names and digests. Several entries and
 * the command line share it, so it is read again before each change, and replaced as a whole. Only
 * its owner can read it.
 */
export class AcceptedFile {
  readonly path: string;
  readonly #entry: string;
  /** The file as it was read last. */
  #stamp: string | undefined;

  /** @param entry whose server it is, such as `tools.docs`. */
  constructor(path: string, entry: string) {
    this.path = path;
    this.#entry = entry;
  }

  /** What was accepted of this entry's server. @throws AcceptedFileError */
  read(): AcceptedServer {
    return this.#readAll().get(this.#entry) ?? {};
  }

  /** Whether it is another file than the one that was read last. */
  hasChanged(): boolean {
    return this.#stampNow() !== this.#stamp;
  }

  /** Accepts something of this entry's server, and keeps the rest. @throws AcceptedFileError */
  accept(server: AcceptedServer): void {
    const servers = this.#readAll();
    servers.set(this.#entry, { ...servers.get(this.#entry), ...server });
    const sorted = [...servers].sort(([one], [other]) => (one < other ? -1 : 1));
    const entries = sorted.map(([entry, { issuer, tools }]) => [
      entry,
      { ...(issuer !== undefined && { issuer }), ...(tools && { tools: Object.fromEntries(tools) }) },
    ]);
    const text = JSON.stringify({ version: VERSION, servers: Object.fromEntries(entries) }, undefined, 2);
    try {
      writeAtomically(this.path, `${text}\n`);
    } catch (error) {
      throw unwritableFile(this.path, error);
    }
    this.#stamp = this.#stampNow();
  }

  #readAll(): Map<string, AcceptedServer> {
    this.#stamp = this.#stampNow();
    let text: string;
    try {
      text = readFileSync(this.path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
      throw unreadableFile(this.path, error);
    }
    return parse(text, this.path);
  }

  #stampNow(): string | undefined {
    const stat = statSync(this.path, { throwIfNoEntry: false, bigint: true });
    return stat && `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
  }
}

function parse(text: string, path: string): Map<string, AcceptedServer> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw corruptFile(path, 'it is not JSON');
  }
  const { version, servers } = record(value) ?? {};
  const all = record(servers);
  if (version !== VERSION || !all) throw corruptFile(path, `it has no \`version: ${VERSION}\` and \`servers\``);
  return new Map(Object.entries(all).map(([entry, server]) => [entry, parseServer(server, path, entry)]));
}

function parseServer(value: unknown, path: string, entry: string): AcceptedServer {
  const { issuer, tools } = record(value) ?? { tools: null };
  const digests = tools === undefined ? [] : Object.entries(record(tools) ?? { '': null });
  const isValid = digests.every(([, digest]) => typeof digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(digest));
  if ((issuer !== undefined && typeof issuer !== 'string') || !isValid) throw corruptFile(path, `its "${entry}" is not valid`);
  return {
    ...(issuer !== undefined && { issuer }),
    ...(tools !== undefined && { tools: new Map(digests.map(([name, digest]) => [name, `${digest}`])) }),
  };
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

/**
 * Readers see the old content or the new. What root writes gets the owner of the folder, so that a
 * command run with sudo does not lock the server out.
 */
function writeAtomically(path: string, text: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o600, flush: true });
    if (process.getuid?.() === 0) {
      const { uid, gid } = statSync(folder);
      chownSync(temporary, uid, gid);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
