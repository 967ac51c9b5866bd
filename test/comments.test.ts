import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';

const root = resolve(import.meta.dirname, '..');
const COLUMNS = 100;
const files = globSync('{kernel,plugins/*,plugin-template/*,test,tools}/**/*.{ts,mjs,js}', {
  cwd: root,
  exclude: (path) => /(^|\/)(node_modules|dist)$/.test(path),
});

/** A line that is part of a comment, without its mark. Tables and examples keep their lines. */
const COMMENT = /^\s*(?:\/\/|\/?\*\*?) (?!\||\s)(.*)$/;
const EXAMPLE = /^\s*(?:\*|\/\/) ```/;

t.test('comments wrap at 100 columns', async (t) => {
  const long = files.flatMap((file) => {
    let isExample = false;
    return readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => {
        if (EXAMPLE.test(line)) isExample = !isExample;
        return !isExample && line.length > COLUMNS && COMMENT.test(line) ? [`${file}:${index + 1}`] : [];
      });
  });
  t.ok(files.length > 500);
  t.strictSame(long, []);
});
