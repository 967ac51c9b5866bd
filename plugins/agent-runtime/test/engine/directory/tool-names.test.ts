import t from 'tap';
import { nameAtModel } from '../../../src/engine/directory/tool-names.js';

t.test('names are letters, digits, _ and -, and begin with a letter or _, as Gemini requires', async (t) => {
  t.equal(nameAtModel('files', 'read', false), 'files__read');
  t.equal(nameAtModel('my files', 'read', true), 'my_files');
  t.equal(nameAtModel('7zip', 'list', false), '_7zip__list');
  t.equal(nameAtModel('-', 'x', true), '_-');
  t.match(nameAtModel('7', 'x'.repeat(99), false), /^_7__x{52}[0-9a-f]{8}$/);
});
