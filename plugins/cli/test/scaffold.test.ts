import { globSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import t from 'tap';
import { localPackages } from '../src/scaffold/local-packages.js';
import { pascalCase, pluginName } from '../src/scaffold/plugin-name.js';
import { run } from './plugboard.js';

t.test('derives the names of a plugin', async (t) => {
  t.same(pluginName('weather', 'tool'), { packageName: 'plugboard-tool-weather', short: 'weather' });
  t.same(pluginName('plugboard-tool-weather', 'tool'), { packageName: 'plugboard-tool-weather', short: 'weather' });
  t.same(pluginName('@you/plugboard-tool-my.weather', 'tool'), {
    packageName: '@you/plugboard-tool-my.weather',
    short: 'my-weather',
  });
  t.same(pluginName('@you/weather', 'tool'), { packageName: '@you/weather', short: 'weather' });
  t.equal(pascalCase('my-weather'), 'MyWeather');
});

t.test('refuses names that npm does not accept, and those of others', async (t) => {
  for (const name of [
    '',
    'Weather',
    '../weather',
    '/etc',
    'a b',
    '@you',
    '@you/',
    '.weather',
    '-w',
    'x'.repeat(215),
    '7up',
    '@plugboard/x',
  ]) {
    t.throws(() => pluginName(name, 'tool'), { name: 'UsageError' }, name);
  }
});

t.test('creates a plugin with the given name everywhere', async (t) => {
  const cwd = t.testdir({});
  const { code, stdout } = await run(t, ['create-plugin', 'my-weather', '--kind', 'interceptor'], { cwd });
  t.equal(code, 0);
  t.match(stdout, /created plugboard-plugin-my-weather in .*\n\nNext:\n\n {2}cd plugboard-plugin-my-weather\n {2}npm install/);
  const folder = join(cwd, 'plugboard-plugin-my-weather');
  const files = globSync('**/*', { cwd: folder }).filter((path) => path.includes('.'));
  t.same(files.toSorted(), [
    'README.md',
    'package.json',
    'src/config.ts',
    'src/index.ts',
    'src/my-weather-interceptor.ts',
    'test/my-weather-interceptor.test.ts',
    'test/tsconfig.json',
    'test/whole-server.test.ts',
    'tsconfig.json',
  ]);
  for (const path of [...files, 'LICENSE', '.gitignore']) {
    t.notMatch(readFileSync(join(folder, path), 'utf8'), /starter/i, path);
  }
  t.match(readFileSync(join(folder, 'src/index.ts'), 'utf8'), 'myWeatherInterceptor(ctx.config');
  const sample = 'The code is a working sample (refuses long conversations and meters turns): replace it with your own.';
  t.match(stdout, sample);
});

t.test('takes from files what was not installed from a registry, and prints an example', async (t) => {
  const cwd = t.testdir({});
  const { stdout } = await run(t, ['create-plugin', 'ask', 'plugins/ask', '--kind', 'transport'], { cwd });
  const root = join(import.meta.dirname, '../../..');
  const folder = join(cwd, 'plugins/ask');
  const { devDependencies, peerDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  t.match(peerDependencies, { '@plugboard/kernel': /^>=/, '@plugboard/transport-http': /^>=/ });
  for (const [name, path] of Object.entries({ kernel: 'kernel', 'transport-http': 'plugins/transport-http' })) {
    const source = `file:${relative(folder, join(root, path))}`;
    t.equal(devDependencies[`@plugboard/${name}`], source);
    t.match(stdout, `  @plugboard/${name}: ${source}\n`);
  }
  t.match(devDependencies, { typescript: /^\^/ });
  t.match(stdout, '  transports:\n    http: {}\n    ask: { use: ./plugins/ask }\n');
});

t.test('init in a clone prints how to install packages that no registry has', async (t) => {
  const cwd = t.testdir({});
  const { code, stdout } = await run(t, ['init', 'mine'], { cwd });
  t.equal(code, 0);
  const clone = join(import.meta.dirname, '../../..');
  const steps = [
    'Next:',
    '',
    `  mkdir -p ${join(cwd, 'mine')}/packages`,
    `  cd ${clone}`,
    '  npm run build',
    `  npm pack --workspaces --pack-destination ${join(cwd, 'mine')}/packages`,
    `  cd ${join(cwd, 'mine')}`,
    '  npm install ./packages/*.tgz',
    '  npx plugboard token create --project default --name me',
  ];
  t.match(stdout, `${steps.join('\n')}\n`);
  t.match(stdout, /no registry/);
  const dockerfile = readFileSync(join(cwd, 'mine/Dockerfile'), 'utf8');
  t.match(dockerfile, /COPY packages packages\nRUN .*npm ci/, 'the container is built from the same tarballs');
  const readme = readFileSync(join(cwd, 'mine/README.md'), 'utf8');
  t.match(readme, /npm install \.\/packages\/\*\.tgz\nnpx plugboard token create/);
  t.match(readme, /upgrade \| .* replace the tarballs in `packages`, `npm install \.\/packages\/\*\.tgz`, `npx plugboard check`/);
  t.match(readme, /go back \| .* restore the data, `packages`, `package\.json` and `package-lock\.json`/);
});

t.test('init in a distribution that was installed from tarballs prints how to install from these', async (t) => {
  const lock = { packages: { 'node_modules/@plugboard/kernel': { resolved: 'file:../my files/plugboard-kernel-1.0.0.tgz' } } };
  const kernel = { 'package.json': JSON.stringify({ name: '@plugboard/kernel', version: '1.0.0' }) };
  const folder = realpathSync(
    t.testdir({
      site: { node_modules: { '.package-lock.json': JSON.stringify(lock), '@plugboard': { kernel } } },
      'my files': {}, // npm does not need the tarball any more, and somebody may have removed it
    }),
  );
  const { code, stdout } = await run(t, ['init', '../mine'], { cwd: join(folder, 'site') });
  t.equal(code, 0);
  const mine = join(folder, 'mine');
  const steps = [
    'Next:',
    '',
    `  mkdir -p ${mine}/packages`,
    `  cp '${folder}/my files'/plugboard-*.tgz ${mine}/packages`,
    `  cd ${mine}`,
    '  npm install ./packages/*.tgz',
    '  npx plugboard token create --project default --name me',
  ];
  t.match(stdout, `${steps.join('\n')}\n`);
  t.match(stdout, /no registry/);
  t.match(readFileSync(join(mine, 'Dockerfile'), 'utf8'), /COPY packages packages\nRUN .*npm ci/);
  const readme = readFileSync(join(mine, 'README.md'), 'utf8');
  t.match(readme, /the tarballs in `packages`[^#]*npm install \.\/packages\/\*\.tgz\nnpx/);
});

t.test('init brings a Node.js where this one came from a package', async (t) => {
  const cwd = t.testdir({});
  await run(t, ['init', 'mine'], { cwd });
  const { devDependencies, allowScripts } = JSON.parse(readFileSync(join(cwd, 'mine/package.json'), 'utf8'));
  const isPackage = process.execPath.includes('/node_modules/');
  t.same([devDependencies, allowScripts], isPackage ? [{ node: '^24.0.0' }, { node: true }] : [undefined, undefined]);
});

t.test('a scaffold brings its Node.js, and its tests fail under an older one, and if there are none', async (t) => {
  const templates = join(import.meta.dirname, '../../../plugin-template');
  for (const path of globSync('*/package.json', { cwd: templates })) {
    const { scripts, devDependencies, allowScripts } = JSON.parse(readFileSync(join(templates, path), 'utf8'));
    t.match(devDependencies, { node: '^24.0.0' }, path);
    t.match(allowScripts, { node: true }, 'npm may install it');
    // An older Node.js does not know the pattern, and finds no test by itself in TypeScript.
    t.match(scripts.test, /node --test --test-reporter=@plugboard\/testing\/reporter "test\/\*\*\/\*\.test\.ts"$/, path);
  }
});

t.test('takes tarballs, those that they depend on too, and leaves what came from a registry to it', async (t) => {
  const manifest = (name: string, more = {}) => ({ 'package.json': JSON.stringify({ name, version: '1.0.0', ...more }) });
  const packed = { dependencies: { shared: '*', public: '*' }, peerDependencies: { peer: '*', packed: '*' } };
  const lock = {
    'node_modules/packed': { resolved: 'file:tarballs/packed-1.0.0.tgz' },
    'node_modules/shared': { resolved: 'file:tarballs/shared-1.0.0.tgz' },
    'node_modules/peer': { resolved: 'file:tarballs/peer-1.0.0.tgz' },
    'node_modules/removed': { resolved: 'file:tarballs/removed-1.0.0.tgz' },
    'node_modules/public': { resolved: 'https://example.com/public-1.0.0.tgz' },
  };
  const names = ['removed', 'public', 'unlocked'];
  const cwd = realpathSync(
    t.testdir({
      tarballs: { 'packed-1.0.0.tgz': '', 'shared-1.0.0.tgz': '', 'peer-1.0.0.tgz': '' },
      node_modules: {
        '.package-lock.json': JSON.stringify({ packages: lock }),
        packed: manifest('packed', packed),
        ...Object.fromEntries(['shared', 'peer', ...names].map((name) => [name, manifest(name)])),
      },
    }),
  );
  const before = process.cwd();
  process.chdir(cwd);
  t.teardown(() => process.chdir(before));
  const found = localPackages(['packed', ...names, 'not-installed'], join(cwd, 'mine'));
  t.same(
    [...found],
    ['packed', 'shared', 'peer'].map((name) => [name, `file:../tarballs/${name}-1.0.0.tgz`]),
  );
});

t.test('overwrites nothing', async (t) => {
  const cwd = t.testdir({ mine: { 'notes.txt': 'mine' }, 'plugboard.yaml': 'mine' });
  const plugin = await run(t, ['create-plugin', 'weather', 'mine', '--kind', 'tool'], { cwd });
  t.match(plugin, { code: 1, stderr: /the folder .*mine is not empty: choose another one/ });
  const distribution = await run(t, ['init'], { cwd });
  t.match(distribution, { code: 1, stderr: /already has plugboard\.yaml: choose another folder, or remove them/ });
  t.same(globSync('**/*.*', { cwd }).toSorted(), ['mine/notes.txt', 'plugboard.yaml']);
});

t.test('a file in place of the folder, or above it, is one sentence', async (t) => {
  const cwd = t.testdir({ notes: 'mine' });
  const stderr = `plugboard: ${join(cwd, 'notes')} is a file, not a folder: choose another folder\n`;
  for (const folder of ['notes', 'notes/mine', 'notes/a/b']) {
    t.strictSame(await run(t, ['init', folder], { cwd }), { code: 1, stdout: '', stderr }, folder);
    const plugin = await run(t, ['create-plugin', 'weather', folder, '--kind', 'tool'], { cwd });
    t.strictSame(plugin, { code: 1, stdout: '', stderr }, folder);
  }
});

t.test('a name that would clash with a name of the sample is refused', async (t) => {
  const cwd = t.testdir({});
  for (const [kind, name, clash] of [
    ['store', 'session', 'SessionStore'],
    ['store', '@you/document', 'DocumentStore'],
    ['transport', 'http', 'HttpRoute'],
  ] as const) {
    const { code, stderr } = await run(t, ['create-plugin', name, '--kind', kind], { cwd });
    t.equal(code, 2);
    t.match(stderr, `makes the name ${clash}, which the sample already uses for something else: choose another name`);
  }
  t.same(globSync('*', { cwd }), []);
});

t.test('a name that contains the word for the sample appears as it is', async (t) => {
  const cwd = t.testdir({});
  t.equal((await run(t, ['create-plugin', 'kick-starter', '--kind', 'store'], { cwd })).code, 0);
  const folder = join(cwd, 'plugboard-store-kick-starter');
  t.equal(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).name, 'plugboard-store-kick-starter');
  t.match(readFileSync(join(folder, 'src/kick-starter-store.ts'), 'utf8'), 'class KickStarterStore implements');
});

t.test('says what is wrong with the command line', async (t) => {
  const cwd = t.testdir({});
  const of = async (...args: string[]) => run(t, ['create-plugin', ...args], { cwd });
  t.match(await of('weather'), { code: 2, stderr: 'plugboard create-plugin needs --kind KIND' });
  t.match(await of('weather', '--kind', 'tol'), { code: 2, stderr: 'there is no kind "tol", did you mean tool?' });
  t.match(await of('--kind', 'tool'), { code: 2, stderr: 'needs NAME' });
  t.match(await of('../weather', '--kind', 'tool'), { code: 2, stderr: '"../weather" is not a valid package name' });
});
