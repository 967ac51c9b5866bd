import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { type CommandAction, CommandError, UsageError } from '@plugboard/kernel/contracts';
import { didYouMean } from '../command/arguments.js';
import { assertCanBeFolder, type Files, readFiles, templateFolder, writeFiles } from '../scaffold/files.js';
import { localPackages } from '../scaffold/local-packages.js';
import { camelCase, type PluginName, pascalCase, pluginName } from '../scaffold/plugin-name.js';

/** The kinds of plugins that there are templates for, with their part in package names. */
const KINDS = {
  tool: 'tool',
  model: 'model',
  store: 'store',
  auth: 'auth',
  transport: 'transport',
  channel: 'transport',
  interceptor: 'plugin',
  'tool-interceptor': 'plugin',
  observer: 'plugin',
} as const;

/** Writes a plugin package that builds and passes its tests, from the template of its kind. */
export const createPlugin: CommandAction = {
  summary: 'Creates a plugin: a package that builds and passes its contract tests',
  positionals: ['NAME', '[DIR]'],
  options: { kind: { value: 'KIND', short: 'k', required: true, description: Object.keys(KINDS).join(', ') } },
  async run(args, { print }) {
    const kind = kindOf(args.text('kind') ?? '');
    const name = pluginName(args.positionals[0] ?? '', KINDS[kind]);
    const given = args.positionals[1] ?? name.packageName.replace(/^@[^/]+\//, '');
    const folder = resolve(given);
    assertCanBeFolder(folder);
    if (existsSync(folder) && (await readdir(folder)).length > 0) {
      throw new CommandError(
        `the folder ${folder} is not empty: choose another one, as in plugboard create-plugin ${name.packageName} DIR`,
      );
    }
    const files = await filesOf(kind, name);
    const local = useLocalPackages(files, folder);
    await writeFiles(folder, files);
    print(`created ${name.packageName} in ${folder}\n\nNext:\n\n  cd ${given}\n  npm install\n  npm run build\n  npm test\n`);
    if (local.size > 0) {
      const sources = Array.from(local, ([dependency, source]) => `  ${dependency}: ${source}`);
      print(
        'These packages come from files in this installation, so package.json does the same for ' +
          `development:\n\n${sources.join('\n')}\n`,
      );
    }
    print(`Then add it to the sections of a plugboard.yaml:\n\n${exampleOf(files, name, folder)}`);
    print(`The code is a working sample (${subjectOf(files)}): replace it with your own.`);
    print('README.md says how to develop, try and publish it.');
    return 0;
  },
};

/** Lets the package take from files what no registry may have. Returns these packages. */
function useLocalPackages(files: Map<string, string>, folder: string): ReadonlyMap<string, string> {
  const manifest = JSON.parse(files.get('package.json') ?? '') as Manifest;
  const local = localPackages(Object.keys({ ...manifest.peerDependencies, ...manifest.devDependencies }), folder);
  const devDependencies = Object.fromEntries(
    Object.entries({ ...manifest.devDependencies, ...Object.fromEntries(local) }).sort(),
  );
  files.set('package.json', `${JSON.stringify({ ...manifest, devDependencies }, undefined, 2)}\n`);
  return local;
}

/** What the sample does: `rolls dice`. */
function subjectOf(files: Files): string {
  const { description } = JSON.parse(files.get('package.json') ?? '') as Manifest;
  return description.replace(/^.*?: /, '');
}

interface Manifest {
  readonly description: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The example of the README, with the folder as `use`. */
function exampleOf(files: Files, { packageName }: PluginName, folder: string): string {
  const [example = ''] = /(?<=```yaml\n).*?(?=```)/s.exec(files.get('README.md') ?? '') ?? [];
  const path = relative(process.cwd(), folder);
  return example
    .replace(`use: ${packageName}`, `use: ${path.startsWith('..') ? path : `./${path}`}`)
    .replaceAll(/^(?=.)/gm, '  ');
}

function kindOf(word: string): keyof typeof KINDS {
  if (Object.hasOwn(KINDS, word)) return word as keyof typeof KINDS;
  const kinds = Object.keys(KINDS);
  throw new UsageError(`there is no kind "${word}"${didYouMean(word, kinds) || `; known: ${kinds.join(', ')}`}`);
}

/** The files of a template with the plugin's names in place of `starter`. */
async function filesOf(kind: keyof typeof KINDS, name: PluginName): Promise<Map<string, string>> {
  const templates = templateFolder('plugin-template');
  const shared = async (file: string) => readFile(join(templates, file), 'utf8');
  const files = new Map(await readFiles(join(templates, kind)));
  files.set('LICENSE', await shared('LICENSE'));
  files.set('.gitignore', await shared('gitignore'));
  assertNoClash(files, name);
  return new Map([...files].map(([path, text]) => [renamed(path, name), renamed(text, name)]));
}

/** @throws UsageError if a name made from the plugin's is that of something the sample uses. */
function assertNoClash(files: Files, name: PluginName): void {
  const code = [...files].flatMap(([path, text]) => (path.endsWith('.ts') ? text : [])).join('\n');
  const words = new Set(code.match(/\w+/g));
  for (const word of words) {
    const own = renamed(word, name);
    if (word === 'starter' || own === word || !words.has(own)) continue;
    throw new UsageError(
      `"${name.short}" makes the name ${own}, which the sample already uses for something else: ` +
        `choose another name, for example "my-${name.short}"`,
    );
  }
}

/** In one pass, because the plugin's own name may contain `starter`. */
function renamed(text: string, { packageName, short }: PluginName): string {
  const names: Readonly<Record<string, string>> = { Starter: pascalCase(short), starter: short };
  return text.replaceAll(/plugboard-(?:[a-z]+-)?starter|(starter)(?=[A-Z])|[Ss]tarter/g, (word, isInName?: string) =>
    isInName === undefined ? (names[word] ?? packageName) : camelCase(short),
  );
}
