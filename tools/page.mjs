// Builds the page of the playground into plugins/transport-playground/dist/page: a script for every
// visit, and one for Markdown, which the page loads with the first answer. `npm run build` runs it.
import { rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { licenses } from './licenses.mjs';

const folder = resolve(import.meta.dirname, '../plugins/transport-playground');

rmSync(join(folder, 'dist/page'), { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: folder,
  entryPoints: { index: 'page/index.html', icon: 'page/icon.svg', style: 'page/style.css', app: 'page/views/app.js' },
  outdir: 'dist/page',
  chunkNames: '[name]-[hash]',
  loader: { '.html': 'copy', '.svg': 'copy' },
  bundle: true,
  splitting: true,
  minify: true,
  format: 'esm',
  target: 'es2024',
  metafile: true,
  logLevel: 'warning',
});
writeFileSync(join(folder, 'dist/LICENSES.txt'), licenses(folder, Object.keys(metafile.inputs)));
