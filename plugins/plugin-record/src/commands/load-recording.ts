import { readFile, stat } from 'node:fs/promises';
import { readRecording, UnreadableRecording } from '../format/read-recording.js';
import type { Recording } from '../format/recording.js';

/** Bytes. A larger file is not from `record`, whose turns have less memory. */
const MAX_SIZE = 256 * 2 ** 20;

/**
 * Reads a file that may be anything.
 *
 * @throws UnreadableRecording with a clause about the file.
 */
export async function loadRecording(path: string): Promise<Recording> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new UnreadableRecording('is not a file');
    if (found.size > MAX_SIZE) throw new UnreadableRecording(`is larger than ${MAX_SIZE / 2 ** 20} MiB`);
    return readRecording(await readFile(path, 'utf8'));
  } catch (error) {
    throw asUnreadable(error);
  }
}

/** Whether the file does not exist. */
export function isGone(error: unknown): boolean {
  const cause = error instanceof UnreadableRecording ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
  return cause?.code === 'ENOENT';
}

/** What a file did to its reader, for example by its depth. */
export function asUnreadable(error: unknown): UnreadableRecording {
  if (error instanceof UnreadableRecording) return error;
  if (error instanceof RangeError) return new UnreadableRecording('is not a recording: its values are nested too deeply');
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === 'ENOENT' ? 'does not exist' : `cannot be read: ${message}`;
  return new UnreadableRecording(why, { cause: error });
}
