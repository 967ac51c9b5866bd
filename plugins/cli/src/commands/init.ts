import { basename, dirname, join, resolve, sep } from 'node:path';
import type { CommandAction } from '@plugboard/kernel/contracts';
import { KERNEL } from '@plugboard/kernel/internal';
import { PROGRAM } from '../base/program.js';
import { readFiles, templateFolder, writeFiles } from '../scaffold/files.js';
import { packageSource } from '../scaffold/local-packages.js';

/** Writes a distribution: a folder with everything to run a server, locally and deployed. */
export const init: CommandAction = {
  summary: 'Creates a distribution: a folder with a configuration, a Dockerfile and more',
  positionals: ['[DIR]'],
  options: {},
  async run(args, { print }) {
    const given = args.positionals[0] ?? '.';
    const folder = resolve(given);
    const name = distributionName(basename(folder));
    const template = templateFolder('templates/distribution');
    const files = new Map<string, string>();
    for (const [path, text] of await readFiles(template)) {
      files.set(DOTTED.has(path) ? `.${path}` : path.replace('distribution.service', `${name}.service`), filled(text, name));
    }
    const source = packageSource(KERNEL.name);
    const packages = quoted(join(folder, 'packages'));
    if (source !== undefined) {
      files.set('README.md', fromTarballs(files.get('README.md') ?? '', source));
      files.set('Dockerfile', (files.get('Dockerfile') ?? '').replace(/^COPY package\.json .*$/m, '$&\nCOPY packages packages'));
    }
    if (isPackage(process.execPath)) files.set('package.json', withNode(files.get('package.json') ?? ''));
    await writeFiles(folder, files);
    print(`created ${name} in ${folder}\n\nNext:\n`);
    if (source === undefined) {
      if (given !== '.') print(`  cd ${given}`);
      print('  npm install');
    } else {
      print(`  mkdir -p ${packages}`);
      if (isTarball(source)) print(`  cp ${quoted(dirname(source))}/plugboard-*.tgz ${packages}`);
      else print(`  cd ${quoted(dirname(source))}\n  npm run build\n  npm pack --workspaces --pack-destination ${packages}`);
      print(`  cd ${quoted(folder)}\n  ${INSTALL_TARBALLS}`);
    }
    print('  npx plugboard token create --project default --name me');
    print('  npx plugboard start\n');
    print('Every call needs the token that "token create" prints. A built-in stand-in answers until you set up a model:');
    print('copy .env.example to .env and set a key. README.md says how to call, change and deploy the server.');
    if (source !== undefined) {
      const origin = isTarball(source) ? 'Plugboard was installed from tarballs' : 'This is a clone of Plugboard';
      print(`\n${origin}, whose packages may be on no registry: so they are installed from files.`);
    }
    return 0;
  },
};

/** Files whose names begin with a dot in the distribution, which npm would not pack. */
const DOTTED = new Set(['gitignore', 'dockerignore', 'env.example']);

const INSTALL_TARBALLS = 'npm install ./packages/*.tgz';

function isTarball(source: string): boolean {
  return source.endsWith('.tgz');
}

/** The README of a distribution whose packages are in `packages`. */
function fromTarballs(readme: string, source: string): string {
  const origin = isTarball(source)
    ? 'Its packages are installed from the tarballs in `packages`, copies of those that Plugboard was installed from.\n'
    : 'Its packages come from a clone of Plugboard, which packs them into `packages` with\n' +
      '`npm pack --workspaces --pack-destination PATH/packages`.\n';
  return readme
    .replace('```sh\nnpm install\n', `\`\`\`sh\n${INSTALL_TARBALLS}\n`)
    .replace(
      'raise the versions in `package.json`, `npm install`',
      `replace the tarballs in \`packages\`, \`${INSTALL_TARBALLS}\``,
    )
    .replace('`package.json` and `package-lock.json`', '`packages`, `package.json` and `package-lock.json`')
    .replace('## Run it\n', `## Run it\n\n${origin}`);
}

/** Whether this Node.js came from a package: outside of its folder there may be an older one. */
function isPackage(node: string): boolean {
  return node.includes(`${sep}node_modules${sep}`);
}

/** A manifest with a Node.js of its own, for this machine: a container has one already. */
function withNode(manifest: string): string {
  const own = { devDependencies: { node: '^24.0.0' }, allowScripts: { node: true } };
  return `${JSON.stringify({ ...(JSON.parse(manifest) as object), ...own }, undefined, 2)}\n`;
}

/** A path for a shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** A name for the package, the container and the service: `My Agents` → `my-agents`. */
function distributionName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
  return name === '' ? 'my-agents' : name;
}

function filled(text: string, name: string): string {
  return text.replaceAll('distribution-name', name).replaceAll('plugboard-version', PROGRAM.version);
}
