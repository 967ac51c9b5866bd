#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';

// Checked in rather than built, because npm links no bin that is missing when it installs.
const [major] = process.versions.node.split('.');
if (Number(major) < 24) {
  console.error(
    `plugboard needs Node.js 24 or newer; this is ${process.version} (${process.execPath}). ` +
      'Install it, or run "npm install node@24" in this folder and use "npx plugboard".',
  );
  process.exit(1);
}
const program = new URL('../dist/main.js', import.meta.url);
if (!existsSync(program)) {
  const folder = fileURLToPath(new URL('../../../', import.meta.url)).slice(0, -1);
  console.error(`plugboard is not built yet: run "npm run build" in ${folder} first. "npm start" builds it, too.`);
  process.exit(1);
}
// SIGHUP reloads a server. One that comes before the configuration was read must not end the
// process. In a terminal it says that the terminal was closed.
if (process.argv[2] === 'start' && ![0, 1, 2].some((descriptor) => isatty(descriptor))) process.on('SIGHUP', () => {});
// Compiled code is kept beside the package where that is writable, so that later starts compile
// less.
const { enableCompileCache } = await import('node:module');
enableCompileCache(process.env.NODE_COMPILE_CACHE ?? fileURLToPath(new URL('../.compile-cache', import.meta.url)));
const { main } = await import(program.href);
await main(process.argv.slice(2));
