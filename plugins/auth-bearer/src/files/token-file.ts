import { type FileHandle, open, stat } from 'node:fs/promises';
import { recordProblem, type TokenRecord } from '../tokens/token-record.js';

/** The format of the file. Raised when older versions of this plugin would misread it. */
const VERSION = 1;

/** The tokens file cannot be used. The message names the file and what to do. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError';
}

/** Returns the records of the file, or none if there is no file. @throws TokenFileError */
export async function readTokens(path: string): Promise<readonly TokenRecord[]> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    assertPrivate(path, (await file.stat()).mode);
    return parseTokens(path, await file.readFile('utf8'));
  } catch (error) {
    if (error instanceof TokenFileError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw new TokenFileError(
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

/** @throws TokenFileError if other users can read or write the file. */
export function assertPrivate(path: string, mode: number): void {
  if ((mode & 0o077) === 0) return;
  throw new TokenFileError(
    `the tokens file ${path} is accessible to other users (mode ${(mode & 0o777).toString(8)}): run chmod 600 ${path}`,
  );
}

/** @throws TokenFileError */
export function parseTokens(path: string, text: string): readonly TokenRecord[] {
  const damaged = (problem: string) =>
    new TokenFileError(`the tokens file ${path} is damaged: ${problem}. Restore a backup, or repair it by hand`);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw damaged('it is not JSON'); // the parser's message would quote the content
  }
  if (typeof content !== 'object' || content === null || !Object.hasOwn(content, 'tokens')) throw damaged('it has no "tokens"');
  const { version, tokens } = content as { version?: unknown; tokens: unknown };
  if (typeof version === 'number' && version > VERSION) {
    throw new TokenFileError(
      `the tokens file ${path} was written by a newer version of @plugboard/auth-bearer: install that version`,
    );
  }
  if (version !== VERSION || !Array.isArray(tokens)) throw damaged(`it is not a list of tokens of version ${VERSION}`);
  const ids = new Set<string>();
  const digests = new Set<string>();
  for (const [index, token] of tokens.entries()) {
    const problem = recordProblem(token);
    if (problem) throw damaged(`tokens[${index}] ${problem}`);
    const { id, sha256 } = token as TokenRecord;
    if (ids.has(id) || digests.has(sha256)) throw damaged(`tokens[${index}] is a duplicate`);
    ids.add(id);
    digests.add(sha256);
  }
  return tokens as TokenRecord[];
}

export function formatTokens(tokens: readonly TokenRecord[]): string {
  return `${JSON.stringify({ version: VERSION, tokens }, undefined, 2)}\n`;
}
