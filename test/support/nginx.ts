import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Test } from 'tap';

/**
 * Runs a real nginx, which .ci/run installs: without it, the test fails.
 *
 * @param http what is in `http { … }` of its configuration.
 * @param url where it then listens.
 */
export async function startNginx(t: Test, http: string, url: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'plugboard-nginx-'));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`);
  const file = join(folder, 'nginx.conf');
  const main = `daemon off; pid ${folder}/pid; error_log stderr; events {}`;
  await writeFile(file, `${main}\nhttp { access_log off; ${temporary.join(' ')}\n${http}}\n`);
  const child = spawn('nginx', ['-e', 'stderr', '-p', folder, '-c', file], {
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (data) => {
    errors += data;
  });
  child.once('error', (error) => t.fail(`nginx does not run, install it: ${error.message}`));
  t.teardown(async () => {
    child.kill('SIGTERM');
    await rm(folder, { recursive: true, force: true });
  });
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${errors}`);
    return (await fetch(`${url}/readyz`).catch(() => undefined)) !== undefined;
  });
}
