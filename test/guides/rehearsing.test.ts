import { join } from 'node:path';
import t from 'tap';
import { Page } from '../support/page.js';
import { folderOf, mistakesIn, NO_ACCOUNTS, root, tryCommands } from './snippets.js';

const page = new Page(join(root, 'docs/guides/rehearsing.md'));

t.test('every configuration is valid', async (t) => {
  const folder = await folderOf(t, page);
  for (const { text, line } of page.in('yaml')) t.equal(await mistakesIn(text, folder), '', `line ${line}`);
});

t.test('every command prints what the page shows', async (t) => {
  await tryCommands(t, page, NO_ACCOUNTS);
});
