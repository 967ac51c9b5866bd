// Runs tests with tap:
//
//   node test/tools/run.mjs [--length short|long|soak] [--coverage] [folder or file …]
//
// `short` runs all files but those named `….long.test.ts`. `long` runs those, and plays the games
// of chance (test/support/rounds.ts) for longer. `soak` plays these games at full length.
//
// A process costs more than most test files: up to GROUP files of a package share one.
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const GROUP = 10;
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
const packages = Object.groupBy(files, (file) => /^(?:(?:plugins|test)\/[^/]+(?=\/)|\w+)/.exec(file)[0]);

rmSync(join(root, folder), { recursive: true, force: true });
mkdirSync(join(root, folder), { recursive: true });
// tap runs them by name. Tests of whole servers take the longest, so they come first.
const groups = Object.entries(packages).flatMap(([name, files]) =>
  writeGroups(name.startsWith('test') ? name : `unit/${name}`, files),
);

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
  const count = Math.ceil(files.length / GROUP);
  return Array.from({ length: count }, (_, index) => {
    const path = `${folder}/${name.replaceAll('/', '-')}${count > 1 ? `-${index + 1}` : ''}.mjs`;
    const share = files.filter((_, position) => position % count === index);
    writeFileSync(
      join(root, path),
      `import { run } from '../../test/tools/group.mjs';\nawait run(${JSON.stringify(share, null, 2)});\n`,
    );
    return path;
  });
}
