import type { Clock } from '@plugboard/kernel';
import { CommandError } from '@plugboard/kernel/contracts';
import { writeAtomically } from '../files/atomic-write.js';
import { withFileLock } from '../files/file-lock.js';
import { type LastUses, lastUseFile, readLastUses, writeLastUses } from '../files/last-use.js';
import { fileSignature, formatTokens, readTokens } from '../files/token-file.js';
import { type TokenRecord, TokensUnusable } from '../tokens/token-record.js';
import type { TokenChange, TokenStorage } from './token-storage.js';

/**
 * Issued tokens in a file. Each change reads and writes the whole file under a lock. The last uses
 * are in a file beside it: each file has one writer.
 */
export class FileStorage implements TokenStorage {
  readonly name = 'the tokens file';
  readonly isShared = false;
  readonly #path: string;
  readonly #clock: Clock;

  /** @param path absolute. */
  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  signature(): Promise<string> {
    return fileSignature(this.#path);
  }

  read(): Promise<readonly TokenRecord[]> {
    return readTokens(this.#path);
  }

  change<T>(work: TokenChange<T>): Promise<T> {
    const path = this.#path;
    return withFileLock(path, async () => {
      const before = await this.read().catch((error) => {
        throw error instanceof TokensUnusable ? new CommandError(error.message) : error;
      });
      const { records, result } = work(before);
      if (records === before) return result;
      try {
        await writeAtomically(path, formatTokens(records));
      } catch (error) {
        throw new CommandError(`the tokens file ${path} cannot be written (${(error as Error).message}); nothing was changed`);
      }
      return result;
    });
  }

  lastUses(): Promise<LastUses> {
    return readLastUses(lastUseFile(this.#path));
  }

  addUses(uses: LastUses): Promise<void> {
    return writeLastUses(lastUseFile(this.#path), uses);
  }

  now(): number {
    return this.#clock.now();
  }
}
