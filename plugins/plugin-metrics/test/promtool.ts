import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

if (spawnSync('promtool', ['--version']).error) {
  // `npm test` skips the file that imports this, but not in CI.
  const message = 'these tests need promtool on this machine: apt-get install prometheus';
  throw Object.assign(new Error(message), { code: 'PROGRAM_MISSING' });
}

/** Runs `promtool`, of Debian's package `prometheus`. @returns its exit code and output. */
export async function promtool(
  args: readonly string[],
  input = '',
): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn('promtool', args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  child.stdin.on('error', () => {}); // it may end before it has read everything
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, text }));
  });
}

/** Runs a function with a file of this content. */
export async function withFile<T>(content: string, run: (path: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'plugboard-promtool-'));
  try {
    const path = join(folder, 'rules.yml');
    await writeFile(path, content);
    return await run(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
