// Starts the processes of tests without tap in them, and measures the coverage of the program
// `plugboard`. tap loads itself into every process that a test starts. That takes 0.6 s of a
// processor, and the start of the program 0.3 s. Node.js writes the same coverage in 0.1 s, unless
// the test sets NODE_V8_COVERAGE itself, or kills the program.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const LOADER = /"?--import=[^ "]*@tapjs\/processinfo[^ "]*"?/;
const PROGRAM = /\/plugins\/cli\/bin\/plugboard\.js|(?:^|\s)plugboard\s/;
const isMeasured = process.env._TAPJS_PROCESSINFO_COVERAGE_ === '1';
const root = `${pathToFileURL(resolve(import.meta.dirname, '../..')).href}/`;
/** Where Node.js writes, and where tap reads. */
const [written, kept] = [resolve(`.tap/programs/${process.pid}`), resolve('.tap/coverage')];

const requireOfTap = createRequire(createRequire(import.meta.url).resolve('tap'));
requireOfTap('process-on-spawn').addListener((child) => {
  const { NODE_OPTIONS = '', ...env } = child.env;
  const options = NODE_OPTIONS.replace(LOADER, '').trim();
  if (options !== '') env.NODE_OPTIONS = options;
  if (isMeasured && child.args.some((arg) => PROGRAM.test(arg))) env.NODE_V8_COVERAGE ??= written;
  child.env = env;
});

/** Gives tap the coverage of the programs that have ended. */
export function keepCoverage() {
  if (!isMeasured) return;
  mkdirSync(written, { recursive: true });
  mkdirSync(kept, { recursive: true });
  for (const name of readdirSync(written)) {
    const { result, 'source-map-cache': maps = {} } = JSON.parse(readFileSync(join(written, name), 'utf8'));
    const own = result.filter(({ url }) => isOwn(url, maps[url]?.data?.sources ?? []));
    const cache = Object.fromEntries(own.flatMap(({ url }) => (url in maps ? [[url, maps[url]]] : [])));
    writeFileSync(join(kept, name), JSON.stringify({ result: own, 'source-map-cache': cache }));
  }
  rmSync(written, { recursive: true });
}

/** Whether a script is ours: neither a dependency, nor bundled with one, nor written by a test. */
function isOwn(url, sources) {
  const isForeign = (path) => path.includes('/node_modules/') || path.includes('/.tap/');
  return url.startsWith(root) && ![url, ...sources].some(isForeign);
}
