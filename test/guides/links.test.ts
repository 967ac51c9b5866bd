import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { Page } from '../support/page.js';
import { root } from './snippets.js';

t.test('every link in the documentation leads to an existing file and heading', async (t) => {
  const paths = globSync(['*.md', 'docs/**/*.md', '{kernel,plugins/*,plugin-template,test}/README.md', 'test/*/*.md'], {
    cwd: root,
  });
  t.ok(paths.length > 20);
  const pages = new Map<string, { readonly links: readonly string[]; readonly anchors: readonly string[] }>();
  const read = (path: string) => {
    const { links, anchors } = pages.get(path) ?? new Page(path);
    pages.set(path, { links, anchors });
    return { links, anchors };
  };
  for (const path of paths) {
    for (const link of read(join(root, path)).links) {
      if (/^https?:/.test(link)) continue;
      const [file = '', anchor] = link.split('#');
      const target = join(root, file === '' ? path : join(dirname(path), file));
      t.ok(existsSync(target), `${path}: ${link}`);
      if (anchor !== undefined) t.ok(read(target).anchors.includes(anchor), `${path}: ${link}`);
    }
  }
});

t.test('CONTRIBUTING.md: every npm script exists', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { text } = new Page(join(root, 'CONTRIBUTING.md'));
  const named = [...text.matchAll(/npm (?:run ([\w:]+)|(test|start))/g)].map(([, script, short]) => script ?? short ?? '');
  t.ok(named.length > 5);
  for (const name of named) t.ok(scripts[name], name);
});
