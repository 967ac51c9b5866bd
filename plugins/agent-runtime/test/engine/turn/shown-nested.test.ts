import type { AgentEvent } from '@plugboard/kernel';
import { NO_USAGE } from '@plugboard/kernel/contracts';
import t from 'tap';
import { shownNested } from '../../../src/engine/turn/shown-nested.js';

const SHELL = { entry: 'shell', name: 'run' };
const EVENTS: readonly AgentEvent[] = [
  { type: 'started', turnId: 'turn_2', agent: 'researcher' },
  { type: 'step', step: 1, connection: 'fast' },
  { type: 'reasoning', text: 'secret thought' },
  { type: 'text', text: 'Looking.' },
  {
    type: 'tool-call',
    id: 'a',
    name: 'shell__run',
    arguments: '{"secret":1}',
    tool: SHELL,
    extra: { connection: 'fast', data: 'secret' },
  },
  { type: 'tool-progress', id: 'a', message: 'secret page' },
  { type: 'nested', call: 'a', agent: 'reader', events: [{ type: 'text', text: 'secret text' }] },
  { type: 'tool-result', id: 'a', content: 'secret file', images: ['data:secret'], isError: false, milliseconds: 3 },
  { type: 'finished', reason: 'stop', usage: NO_USAGE },
];
const typesOf = (events: readonly AgentEvent[]) => events.map(({ type }) => type);

t.test('AG-5 the toolVisibility of an agent that a tool asks decides what is seen of its turn', async (t) => {
  t.equal(shownNested(EVENTS, 'full'), EVENTS);
  const names = shownNested(EVENTS, 'names');
  t.same(typesOf(names), ['started', 'step', 'text', 'tool-call', 'tool-result', 'finished']);
  t.match(names[3], { name: 'shell__run', tool: SHELL, arguments: '' });
  t.notMatch(JSON.stringify(names), /secret/);
  const none = shownNested(EVENTS, 'none');
  t.same(typesOf(none), ['started', 'text', 'finished']);
});
