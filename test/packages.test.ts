import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { Page } from './support/page.js';

/**
 * Packages of this repository accept each other at every version before 1.0 (CONTRIBUTING.md says
 * why).
 */
const RANGE = '>=0.1.0 <1';

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly files?: readonly string[];
  readonly engines?: { readonly node?: string };
}

const root = join(import.meta.dirname, '..');
const read = (path: string): Manifest => JSON.parse(readFileSync(join(root, path), 'utf8'));
const workspaces = globSync('{kernel,plugins/*,plugin-template/*}/package.json', { cwd: root });

t.test('the version ranges between packages of this repository survive a version bump', async (t) => {
  const own = new Set(workspaces.map((path) => read(path).name));
  for (const path of ['package.json', ...workspaces]) {
    const { dependencies, peerDependencies } = read(path);
    for (const [name, range] of Object.entries({ ...dependencies, ...peerDependencies })) {
      if (own.has(name)) t.equal(range, RANGE, `${path}: ${name}`);
    }
  }
});

t.test('every package names the Node.js version that it needs', async (t) => {
  for (const path of workspaces) t.equal(read(path).engines?.node, '>=24', path);
});

t.test('every package ships the sources that its source maps, and so its stack traces, name', async (t) => {
  for (const path of workspaces) t.ok(read(path).files?.includes('src'), path);
});

t.test('a page of a package links to nothing that is not in the package', async (t) => {
  for (const path of workspaces) {
    const folder = dirname(path);
    const packed = [...(read(path).files ?? []), 'README.md', 'package.json', 'LICENSE'];
    // The templates are beside the package that they become part of.
    const pages = folder === 'plugins/cli' ? ['README.md', '../../plugin-template/README.md'] : ['README.md'];
    for (const page of pages) {
      for (const link of new Page(join(root, folder, page)).links) {
        if (/^https?:/.test(link)) continue;
        const [file = ''] = link.split('#');
        const target = join(dirname(page), file);
        const isPacked = file === '' || packed.some((name) => target === name || target.startsWith(`${name}/`));
        const isBeside = page.startsWith('..') && !file.startsWith('..') && existsSync(join(root, folder, target));
        t.ok(isPacked || isBeside, `${join(folder, page)}: ${link}`);
      }
    }
  }
});
