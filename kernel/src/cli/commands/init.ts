import { basename, resolve } from 'node:path';
import { KERNEL } from '../../host/base/kernel-package.js';
import type { CommandAction } from '../command/command.js';
import { readFiles, templateFolder, writeFiles } from '../scaffold/files.js';

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
    await writeFiles(folder, files);
    print(`created ${name} in ${folder}\n\nNext:\n`);
    if (given !== '.') print(`  cd ${given}`);
    print('  npm install');
    print('  npx plugboard token create --project default --name me');
    print('  npx plugboard start\n');
    print('Every call needs the token that the second command prints. A built-in stand-in answers until you set up a model:');
    print('copy .env.example to .env and set a key. README.md says how to call, change and deploy the server.');
    return 0;
  },
};

/**
 * Files whose names begin with a dot in the distribution. npm does not pack them under that name.
 */
const DOTTED = new Set(['gitignore', 'dockerignore', 'env.example']);

/** A name for the package, the container and the service: `My Agents` → `my-agents`. */
function distributionName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return name === '' ? 'my-agents' : name;
}

function filled(text: string, name: string): string {
  return text.replaceAll('distribution-name', name).replaceAll('kernel-version', KERNEL.version);
}
