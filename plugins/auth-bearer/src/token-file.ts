import { type FileHandle, open, stat } from 'node:fs/promises';
import { faultOfRecord, type TokenRecord } from './token-record.js';

/** Of the form of the file. It rises when a version of this plugin that knows the old one would misread the new one. */
const VERSION = 1;

/** The tokens file cannot be used. The message names it, and what would help. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError';
}

/** The records in the file; none where there is no file. @throws TokenFileError */
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
      `the tokens file ${path} cannot be read (${code}); it must belong to the user that the server runs as, like the folder that it is in`,
    );
  } finally {
    await file?.close();
  }
}

/** Differs from what it was when the file, its content or its permissions have changed. Reads nothing. */
export async function signatureOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/** Whoever could write the file could let themselves in, and whoever reads it knows who may. @throws TokenFileError */
export function assertPrivate(path: string, mode: number): void {
  if ((mode & 0o077) === 0) return;
  throw new TokenFileError(
    `the tokens file ${path} is open to other users (mode ${(mode & 0o777).toString(8)}); run: chmod 600 ${path}`,
  );
}

/** @throws TokenFileError */
export function parseTokens(path: string, text: string): readonly TokenRecord[] {
  const damaged = (what: string) =>
    new TokenFileError(`the tokens file ${path} is damaged: ${what}; restore it from a copy, or mend it by hand`);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw damaged('it is no JSON'); // the parser's own words would repeat a piece of it
  }
  if (typeof content !== 'object' || content === null || !Object.hasOwn(content, 'tokens')) throw damaged('it has no "tokens"');
  const { version, tokens } = content as { version?: unknown; tokens: unknown };
  if (typeof version === 'number' && version > VERSION) {
    throw new TokenFileError(
      `the tokens file ${path} was written by a newer version of @plugboard/auth-bearer; install that version`,
    );
  }
  if (version !== VERSION || !Array.isArray(tokens)) throw damaged(`it is no list of tokens of version ${VERSION}`);
  const ids = new Set<string>();
  const digests = new Set<string>();
  for (const [index, token] of tokens.entries()) {
    const fault = faultOfRecord(token);
    if (fault) throw damaged(`tokens[${index}] ${fault}`);
    const { id, sha256 } = token as TokenRecord;
    if (ids.has(id) || digests.has(sha256)) throw damaged(`tokens[${index}] is there twice`);
    ids.add(id);
    digests.add(sha256);
  }
  return tokens as TokenRecord[];
}

export function formatTokens(tokens: readonly TokenRecord[]): string {
  return `${JSON.stringify({ version: VERSION, tokens }, undefined, 2)}\n`;
}
