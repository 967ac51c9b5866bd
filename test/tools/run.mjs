// Runs tests with tap:
//
//   node test/tools/run.mjs [--length short|long|soak] [--coverage] [folder or file …]
//
// `short` runs all files but those named `….long.test.ts`. `long` runs those, and plays the games
// of chance (test/support/rounds.ts) for longer. `soak` plays these games at full length.
//
// A process takes a second before its first test, which is more than most test files take: up to
// GROUP files share one, those of a package with each other and with the packages beside it.
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** Most files of a process. Few long ones, so that no process is the last one for long. */
const GROUP = { short: 20, long: 6, soak: 6 };
/** More processes than cores, because tests also wait. */
const JOBS = { short: 3, long: 2, soak: 1 };
/** Seconds for a group; each file has its own limit, see group.mjs. */
const TIMEOUT = 3_600;

const root = resolve(import.meta.dirname, '../..');
const folder = '.tap/groups';
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { length: { type: 'string', default: 'short' }, coverage: { type: 'boolean', default: false } },
});

const isLong = (file) => file.endsWith('.long.test.ts');
const isGame = (file) => readFileSync(join(root, file), 'utf8').includes('support/rounds.js');
const selected = { short: (file) => !isLong(file), long: (file) => isLong(file) || isGame(file), soak: isGame }[values.length];

const files = globSync(['test/**/*.test.ts', 'plugins/*/test/**/*.test.ts', 'kernel/test/**/*.test.ts'], { cwd: root })
  .filter((file) => positionals.length === 0 || positionals.some((start) => file.startsWith(start)))
  .filter(selected)
  .toSorted();
const subjects = Object.groupBy(files, (file) => /^test(?:\/[^/]+(?=\/))?/.exec(file)?.[0] ?? 'unit');

rmSync(join(root, folder), { recursive: true, force: true });
mkdirSync(join(root, folder), { recursive: true });
// tap runs them by name. Tests of whole servers take the longest, so they come first.
const groups = Object.entries(subjects).flatMap(([name, files]) => writeGroups(name, files));

const options = [`--jobs=${JOBS[values.length]}`, `--timeout=${TIMEOUT}`];
if (!values.coverage) options.push('--disable-coverage');
const { status } = spawnSync('tap', [...options, ...groups], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PLUGBOARD_LENGTH: values.length },
});
process.exitCode = status ?? 1;

/** Writes the modules that tap runs, each of which runs its share of the files. */
function writeGroups(name, files) {
  const count = Math.ceil(files.length / GROUP[values.length]);
  return Array.from({ length: count }, (_, index) => {
    const number = count > 1 ? `-${String(index + 1).padStart(2, '0')}` : '';
    const path = `${folder}/${name.replaceAll('/', '-')}${number}.mjs`;
    const share = files.slice(Math.ceil((index * files.length) / count), Math.ceil(((index + 1) * files.length) / count));
    writeFileSync(
      join(root, path),
      `import { run } from '../../test/tools/group.mjs';\nawait run(${JSON.stringify(share, null, 2)});\n`,
    );
    return path;
  });
}
