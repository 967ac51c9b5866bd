import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Puts a file in the place of another in one step: whoever reads it sees the old one or the new one, and what was told to be written survives a power cut.
 * Only its owner may read it. Folders that are missing are made, for the owner alone. Run by root, it belongs to whoever the file or its folder belonged to: a command
 * run with sudo must not lock the server out.
 */
export async function writeAtomically(path: string, text: string): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    try {
      await file.writeFile(text);
      if (process.getuid?.() === 0) {
        const { uid, gid } = await stat(path).catch(() => stat(folder));
        await file.chown(uid, gid);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
