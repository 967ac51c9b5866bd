// Copies the plugin templates into the package before `npm pack`, and removes the copy afterwards
// (`--remove`).
import { cp, rm } from 'node:fs/promises';
import { basename } from 'node:path';

const copy = new URL('../plugin-template/', import.meta.url);
await rm(copy, { recursive: true, force: true });
if (!process.argv.includes('--remove')) {
  const isSource = (path) => !['node_modules', 'dist'].includes(basename(path)) && !path.endsWith('.tsbuildinfo');
  await cp(new URL('../../../plugin-template/', import.meta.url), copy, { recursive: true, filter: isSource });
}
