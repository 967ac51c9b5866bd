/** Agents that are tools of agents, over a store that servers share. */
import t from 'tap';
import { SharedMemory } from '../../plugins/agent-runtime/test/sessions/shared/shared-memory.js';
import { asking, calls, collect, family } from '../../plugins/tool-agent/test/family.js';
import { sessionsOf } from './two-servers.js';

t.test('PG-16 a turn of an agent that a tool asks starts no tool when the lease of the first turn is lost', async (t) => {
  const store = new SharedMemory().server();
  const { asked, run } = await family(t, {
    agents: { root: { tools: ['helper'] }, helper: { tools: ['clock'] } },
    tools: { helper: asking('helper'), clock: { use: 'clock' } },
    plays: {
      root: () => calls(['helper', 'What time is it?']),
      helper: () => {
        store.isHeld = false;
        return { toolCalls: [{ name: 'clock', arguments: {} }] };
      },
    },
    file: { sessions: sessionsOf(store) },
  });
  const events = await collect(run('root', { session: { key: 's' } } as never));
  t.match(events.at(-1), { type: 'failed', failure: { code: 'lease_lost' } });
  t.equal(asked('helper').length, 1, 'it got no result');
});
