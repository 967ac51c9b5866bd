import { join } from 'node:path';
import t, { type Test } from 'tap';
import { plugin, problemsOf } from '../../../kernel/test/host/distribution.js';
import { runWithin } from '../src/diagnosis/run-within.js';
import { diagnosis } from '../src/server/compose.js';

let count = 0;

/**
 * The problems of a configuration with one plugin. Modules are cached, so each has its own file,
 * `odd-1.js`.
 */
async function problemsWith(t: Test, module: string): Promise<string[]> {
  const file = `odd-${++count}.js`;
  const yaml = `transports: {}\nplugins:\n  odd: { use: ./${file} }\n`;
  return problemsOf(t, { 'plugboard.yaml': yaml, [file]: module }, { diagnosis });
}

t.test('R-053 a register that never returns is ended', async (t) => {
  t.equal(
    runWithin(30, () => {
      for (;;);
    }),
    false,
  );
  t.equal(
    runWithin(10_000, () =>
      t.equal(
        runWithin(10_000, () => undefined),
        true,
      ),
    ),
    true,
    'also inside of another one',
  );
  t.throws(
    () =>
      runWithin(10_000, () => {
        throw new RangeError('no');
      }),
    RangeError,
  );
});

t.test('a name that the kernel does not export is reported with the import path or the version that has it', async (t) => {
  t.match(await problemsWith(t, `import { textOf } from '@plugboard/kernel'; ${plugin()}`), [
    /imports "textOf", which @plugboard\/kernel \d+\.\d+\.\d+ does not export; import it from @plugboard\/kernel\/contracts$/,
  ]);
  const problems = await problemsOf(
    t,
    {
      'plugboard.yaml': 'transports: {}\nplugins:\n  odd: { use: ./odd }\n',
      odd: {
        'package.json':
          '{ "name": "odd", "version": "3.0.0", "type": "module", "peerDependencies": { "@plugboard/kernel": ">=7.1" } }',
        'index.js': `import { beam } from '@plugboard/kernel/contracts'; ${plugin()}`,
      },
    },
    { diagnosis },
  );
  t.match(problems, [
    new RegExp(
      'index.js \\(odd 3.0.0\\) imports "beam", which @plugboard/kernel/contracts \\(.*\\) does not export; ' +
        'update @plugboard/kernel \\(the package.json of odd asks for >=7.1\\)$',
    ),
  ]);
  t.match(await problemsWith(t, `import { beam } from 'node:path'; ${plugin()}`), [/cannot be loaded: .*'beam'/]);
});

t.test('a module that cannot be imported is reported with the place and the cure', async (t) => {
  const at = t.testdirName;
  const imports = (specifier: string) => `import ${JSON.stringify(specifier)};\n${plugin()}`;
  const of = async (files: Record<string, string | Record<string, string>>, use: string) => {
    const [problem = ''] = await problemsOf(
      t,
      {
        ...files,
        'plugboard.yaml': `transports: {}\nplugins:\n  odd: { use: ${use} }\n`,
      },
      { diagnosis },
    );
    return problem;
  };
  const manifest = '{ "name": "odd", "version": "2.0.0", "type": "module", "dependencies": { "listed-there": "1" } }';
  /** The folder of the package, the path of its module, and that path as messages show it. */
  let folder = '';
  let index = '';
  let own = '';
  const inPackage = async (module: string) => {
    const name = `odd-${++count}`; // modules are cached
    folder = join(at, name);
    index = join(folder, 'index.js');
    own = `${index} (odd 2.0.0)`;
    return of({ [name]: { 'package.json': manifest, 'index.js': module } }, `./${name}`);
  };
  const listed = await inPackage(imports('listed-there/sub'));
  t.match(
    listed,
    `the plugin at ${own} imports the package "listed-there" in ${index}, which is not installed; run npm install in ${folder}`,
  );
  const unlisted = await inPackage(imports('@you/not-listed/sub'));
  t.match(unlisted, `check the name, and install the package @you/not-listed in ${folder}`);
  const gone = await inPackage(imports('./gone.js'));
  t.match(gone, `the plugin at ${own} imports ${join(folder, 'gone.js')} in ${index}, which does not exist; correct the import`);
  const thrown = await inPackage('throw new Error("no wish");');
  t.match(thrown, `the plugin at ${own} cannot be loaded: no wish, at ${index}:1:7`);
  t.match(
    await of({ empty: { 'package.json': '{ "name": "odd", "version": "2.0.0" }' } }, './empty'),
    `the folder ${join(at, 'empty')} is not a plugin: it has neither a package.json with "exports" nor an index.js`,
  );
});
