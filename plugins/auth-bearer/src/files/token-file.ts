import { type FileHandle, open, stat } from 'node:fs/promises';
import { type TokenRecord, TokensUnusable, tokenRecords } from '../tokens/token-record.js';

/** The format of the file. Raised when older versions of this plugin would misread it. */
const VERSION = 1;

/** Returns the records of the file, or none if there is no file. @throws TokensUnusable */
export async function readTokens(path: string): Promise<readonly TokenRecord[]> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    assertPrivate(path, (await file.stat()).mode);
    return parseTokens(path, await file.readFile('utf8'));
  } catch (error) {
    if (error instanceof TokensUnusable) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw new TokensUnusable(
      `the tokens file ${path} cannot be read (${code}): the file and its folder must belong to the user that runs the server`,
    );
  } finally {
    await file?.close();
  }
}

/** A text that changes with the file, its content or its permissions. Reads no content. */
export async function fileSignature(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/** @throws TokensUnusable if other users can read or write the file. */
export function assertPrivate(path: string, mode: number): void {
  if ((mode & 0o077) === 0) return;
  throw new TokensUnusable(
    `the tokens file ${path} is accessible to other users (mode ${(mode & 0o777).toString(8)}): run chmod 600 ${path}`,
  );
}

/** @throws TokensUnusable */
export function parseTokens(path: string, text: string): readonly TokenRecord[] {
  const damaged = (problem: string) =>
    new TokensUnusable(`the tokens file ${path} is damaged: ${problem}. Restore a backup, or repair it by hand`);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw damaged('it is not JSON'); // the parser's message would quote the content
  }
  if (typeof content !== 'object' || content === null || !Object.hasOwn(content, 'tokens')) throw damaged('it has no "tokens"');
  const { version, tokens } = content as { version?: unknown; tokens: unknown };
  if (typeof version === 'number' && version > VERSION) {
    throw new TokensUnusable(
      `the tokens file ${path} was written by a newer version of @plugboard/auth-bearer: install that version`,
    );
  }
  if (version !== VERSION || !Array.isArray(tokens)) throw damaged(`it is not a list of tokens of version ${VERSION}`);
  return tokenRecords(tokens, damaged);
}

export function formatTokens(tokens: readonly TokenRecord[]): string {
  return `${JSON.stringify({ version: VERSION, tokens }, undefined, 2)}\n`;
}
