import { basename, dirname, resolve } from 'node:path';
import type { CommandAction } from '@plugboard/kernel/contracts';
import { KERNEL } from '@plugboard/kernel/internal';
import { PROGRAM } from '../base/program.js';
import { readFiles, templateFolder, writeFiles } from '../scaffold/files.js';
import { localPackages } from '../scaffold/local-packages.js';

/**
 * Writes a distribution: a folder with everything that a server needs to run, locally and deployed.
 */
export const init: CommandAction = {
  summary: 'Creates a distribution: package.json, plugboard.yaml, Dockerfile, compose file, systemd unit',
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
    const clone = cloneOf(folder);
    if (clone !== undefined) files.set('README.md', fromTarballs(files.get('README.md') ?? ''));
    await writeFiles(folder, files);
    print(`created ${name} in ${folder}\n\nNext:\n`);
    if (clone !== undefined) {
      const packages = quoted(`${folder}/packages`);
      print(`  mkdir ${packages}\n  cd ${quoted(clone)}\n  npm run build`);
      print(`  npm pack --workspaces --pack-destination ${packages}\n  cd ${quoted(folder)}\n  ${INSTALL_TARBALLS}`);
    } else {
      if (given !== '.') print(`  cd ${given}`);
      print('  npm install');
    }
    print('  npx plugboard token create --project default --name me');
    print('  npx plugboard start\n');
    print('Every call needs the token that "token create" prints. A built-in stand-in answers until you set up a model:');
    print('copy .env.example to .env and set a key. README.md says how to call, change and deploy the server.');
    if (clone !== undefined) {
      print('\nThis is a clone of Plugboard, whose packages may be on no registry: so they are packed and installed from files.');
      print('For Docker, see "Without a registry" in docs/guides/distributions.md.');
    }
    return 0;
  },
};

/**
 * Files whose names begin with a dot in the distribution. npm does not pack them under that name.
 */
const DOTTED = new Set(['gitignore', 'dockerignore', 'env.example']);

const INSTALL_TARBALLS = 'npm install ./packages/*.tgz';

/** The clone of the repository that this program runs from, if it does. */
function cloneOf(folder: string): string | undefined {
  const source = localPackages([KERNEL.name], folder).get(KERNEL.name);
  return source === undefined || source.endsWith('.tgz') ? undefined : dirname(resolve(folder, source.slice('file:'.length)));
}

/** The README of a distribution whose packages are in `packages`. */
function fromTarballs(readme: string): string {
  return readme
    .replace('```sh\nnpm install\n', `\`\`\`sh\n${INSTALL_TARBALLS}\n`)
    .replace(
      'raise the versions in `package.json`, `npm install`',
      `replace the tarballs in \`packages\`, \`${INSTALL_TARBALLS}\``,
    )
    .replace('`package.json` and `package-lock.json`', '`packages`, `package.json` and `package-lock.json`')
    .replace(
      '## Run it\n',
      '## Run it\n\nIts packages come from a clone of Plugboard, which packs them into `packages` with\n' +
        '`npm pack --workspaces --pack-destination PATH/packages`. For Docker, add the line `COPY packages packages` to the\n' +
        '`Dockerfile` before the line that runs `npm ci`.\n',
    );
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
    .replaceAll(/^-+|-+$/g, '');
  return name === '' ? 'my-agents' : name;
}

function filled(text: string, name: string): string {
  return text.replaceAll('distribution-name', name).replaceAll('plugboard-version', PROGRAM.version);
}
