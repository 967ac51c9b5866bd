import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecordingName } from '../format/file-name.js';

/** Milliseconds after which a file that is still being written belongs to a process that died. */
const MAX_WRITING = 3_600_000;
const WRITING = /^\.[\w-]+\.jsonl\.[0-9a-f]{12}\.tmp$/;

/** What the folder may hold. */
export interface FolderLimits {
  readonly keep: number;
  readonly maxBytes: number;
}

/**
 * A folder of recordings. Several servers may write to one: a file appears whole, with its name,
 * and each of them deletes the oldest files, also those of the others.
 */
export class RecordingFolder {
  readonly path: string;
  readonly #limits: FolderLimits;
  /** Sizes of files, by their names: a recording never changes. */
  #sizes = new Map<string, number>();

  constructor(path: string, limits: FolderLimits) {
    this.path = path;
    this.#limits = limits;
  }

  async create(): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
  }

  /** Writes a file. @throws an error of the file system; then the file does not exist. */
  async write(name: string, lines: Iterable<string>): Promise<void> {
    await this.create();
    const temporary = join(this.path, `.${name}.${randomBytes(6).toString('hex')}.tmp`);
    try {
      await writeFile(temporary, lines, { flag: 'wx', mode: 0o600 });
      await rename(temporary, join(this.path, name));
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
  }

  /** Deletes the oldest files beyond the limits, and what dead processes left. */
  async prune(now: number): Promise<void> {
    const names = await readdir(this.path);
    const files = await this.#measured(names.filter(isRecordingName).sort());
    const { keep, maxBytes } = this.#limits;
    let bytes = files.reduce((sum, { size }) => sum + size, 0);
    for (const [index, { name, size }] of files.entries()) {
      if (files.length - index <= keep && bytes <= maxBytes) break;
      await rm(join(this.path, name), { force: true });
      bytes -= size;
    }
    for (const name of names.filter((one) => WRITING.test(one))) {
      const path = join(this.path, name);
      const written = await stat(path).catch(() => undefined);
      if (written && now - written.mtimeMs > MAX_WRITING) await rm(path, { force: true });
    }
  }

  /** Files that another server has deleted meanwhile are left out. */
  async #measured(names: readonly string[]): Promise<readonly { readonly name: string; readonly size: number }[]> {
    const sizes = new Map<string, number>();
    for (const name of names) {
      const size = this.#sizes.get(name) ?? (await stat(join(this.path, name)).catch(() => undefined))?.size;
      if (size !== undefined) sizes.set(name, size);
    }
    this.#sizes = sizes;
    return [...sizes].map(([name, size]) => ({ name, size }));
  }
}
