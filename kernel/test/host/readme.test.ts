import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { ToolSources } from '../../src/contracts/tools/tool-source.js';
import { composed } from './distribution.js';

const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');

t.test('the plugin of the README works with the configuration of the README', async (t) => {
  const [, dice = ''] = /```js\n(\/\/ dice\.js\n[\s\S]*?)```/.exec(readme) ?? [];
  const [, yaml = ''] = /```yaml\n(# plugboard\.yaml\n[\s\S]*?)```/.exec(readme) ?? [];
  const { server } = await composed(t, { 'dice.js': dice, 'plugboard.yaml': yaml }, { ids: new SequentialIds([0.99]) });
  await server.start();
  const [tool] = (await server.extensions(ToolSources).get('dice')?.tools(AbortSignal.timeout(1000))) ?? [];
  t.match(tool?.description, 'of 20 sides');
  t.equal(await tool?.run({}, {} as never), '20');
});
