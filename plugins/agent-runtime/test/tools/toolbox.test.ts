import type { Contribution, Extensions, Tool, ToolSource } from '@plugboard/kernel';
import { CapturedLog, ManualClock } from '@plugboard/kernel/testing';
import t from 'tap';
import { Toolboxes } from '../../src/tools/toolbox.js';

const ECHO: Tool = { name: 'echo', description: 'Echoes.', inputSchema: { type: 'object' }, run: () => 'x' };

/** The problems of an agent that uses the entry `a`, whose `tools()` returns this. */
async function problemsWith(listed: unknown) {
  const source: ToolSource = { tools: () => listed as readonly Tool[] };
  const all: readonly Contribution<ToolSource>[] = [{ name: 'a', value: source, entry: 'tools.a', shared: {} }];
  const sources = { all: () => all } as Extensions<ToolSource>;
  return new Toolboxes(sources, new CapturedLog().logger(new ManualClock())).problems(['a'], new AbortController().signal);
}

t.test('a malformed list of tools is reported with its entry and the missing member', async (t) => {
  const mistakes: readonly (readonly [unknown, string])[] = [
    [null, 'tools() did not return an array'],
    [[undefined], 'tools() returned a tool without a name'],
    [[{ ...ECHO, name: undefined }], 'tools() returned a tool without a name'],
    [[{ ...ECHO, description: undefined }], 'the tool "echo" has no description'],
    [[{ ...ECHO, inputSchema: undefined }], 'the tool "echo" has no inputSchema'],
    [[ECHO, { ...ECHO, name: 'other', run: undefined }], 'the tool "other" has no run()'],
  ];
  for (const [listed, mistake] of mistakes)
    t.same(await problemsWith(listed), [{ path: [0], message: `entry "a": ${mistake}; its plugin must be corrected` }]);
  t.same(await problemsWith([ECHO]), []);
});
