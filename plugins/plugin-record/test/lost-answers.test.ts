import type { AgentEvent, Turn } from '@plugboard/kernel';
import type { TurnRequest } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { failureOf, RecordedTurn } from '../src/record/recorded-turn.js';

const CALL: AgentEvent = { type: 'tool-call', id: 'a', name: 'mail', arguments: '{}', tool: { entry: 'mail', name: 'mail' } };
const INPUT = { id: 'a', input: {} } as never;

/** The line of a call, after what `play` did to its turn. */
function lineAfter(result: Partial<AgentEvent & { type: 'tool-result' }>, play: (turn: RecordedTurn) => void) {
  const request = { messages: [], params: {}, clientTools: [] } as unknown as TurnRequest;
  const recorded = new RecordedTurn({ request, at: 0, started: 0 }, new ManualClock(), () => true);
  recorded.begin({ messages: [], metadata: {}, principal: { project: 'default', scopes: [] } } as unknown as Turn);
  recorded.add([CALL]);
  play(recorded);
  recorded.add([{ type: 'tool-result', id: 'a', content: 'text', images: [], isError: false, milliseconds: 1, ...result }]);
  return recorded.end('stop', undefined)?.tools[0];
}

t.test('TC-1 of a call that was made twice, the last result is recorded', async (t) => {
  const line = lineAfter({}, (turn) => {
    turn.ran(INPUT, failureOf(new Error('the connection broke')));
    turn.ran(INPUT, { output: 'sent' });
  });
  t.match(line, { state: 'ran', output: 'sent', failed: undefined });
});

t.test('TC-2 of a call of unknown effect, what the model was told is recorded', async (t) => {
  const fails = (turn: RecordedTurn) => turn.ran(INPUT, failureOf(new Error('the connection broke')));
  t.match(lineAfter({ isError: true, effect: 'unknown' }, fails), {
    output: { content: [{ type: 'text', text: 'text' }], isError: true },
    failed: undefined,
  });
  t.match(lineAfter({ isError: true }, fails), { output: undefined, failed: { message: 'the connection broke' } });
});
