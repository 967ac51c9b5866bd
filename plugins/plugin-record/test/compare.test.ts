import type { Message } from '@plugboard/kernel';
import t from 'tap';
import type { Attempt, Recording } from '../src/format/recording.js';
import { type Change, changesIn, type Replay } from '../src/replay/compare.js';
import { attempt, CLOCK, QUESTION, recording, toolLine, turnLine } from './recordings.js';

function changes(before: Recording, after: Recording, replay: Partial<Replay> = {}): readonly Change[] {
  return changesIn(before, {
    recording: after,
    missing: [],
    isCutShort: false,
    isOpenEnded: false,
    isIgnored: () => false,
    ...replay,
  });
}

/** A recording whose attempts are changed. */
function withAttempts(change: (one: Attempt) => Partial<Attempt>): Recording {
  const one = recording();
  return { ...one, attempts: one.attempts.map((each) => ({ ...each, ...change(each) })) };
}

const withPrompt = (content: string) => (one: Attempt) => ({
  messages: [{ role: 'system', content } satisfies Message, ...one.messages.slice(1)],
});

t.test('a turn is the same as itself with other ids of the server', async (t) => {
  const text = JSON.stringify(recording())
    .replaceAll('call_one', 'call_two')
    .replaceAll('turn_one', 'turn_two')
    .replaceAll('req_one', 'r2');
  t.strictSame(changes(recording(), JSON.parse(text)), []);
});

t.test('what stays changed from step to step is one change', async (t) => {
  t.strictSame(changes(recording(), withAttempts(withPrompt('You are brief.'))), [
    { kind: 'prompt', step: 1, before: 'You are terse.', after: 'You are brief.' },
  ]);
  t.strictSame(
    changes(
      recording(),
      withAttempts(() => ({ params: { temperature: 1 } })),
    ),
    [{ kind: 'params', step: 1, before: { temperature: 0.2 }, after: { temperature: 1 } }],
  );
  t.strictSame(
    changes(
      recording(),
      withAttempts(() => ({ model: 'big-2' })),
    ),
    [{ kind: 'model', step: 1, before: { connection: 'fast', model: 'big-1' }, after: { connection: 'fast', model: 'big-2' } }],
  );
});

t.test('a prompt that changes again in a later step is another change', async (t) => {
  const after = withAttempts((one) => withPrompt(one.step === 1 ? 'You are brief.' : 'You are long.')(one));
  t.strictSame(
    changes(recording(), after).map(({ kind, step }) => [kind, step]),
    [
      ['prompt', 1],
      ['prompt', 2],
    ],
  );
});

t.test('of the tools, those that differ are named, and their order means nothing', async (t) => {
  const other = { ...CLOCK, name: 'almanac' };
  t.strictSame(
    changes(
      recording(),
      withAttempts(() => ({ tools: [other, CLOCK] })),
    ),
    [{ kind: 'tools', step: 1, before: [], after: [other] }],
  );
  const before = withAttempts(() => ({ tools: [CLOCK, other] }));
  t.strictSame(
    changes(
      before,
      withAttempts(() => ({ tools: [other, CLOCK] })),
    ),
    [],
  );
});

t.test('a message is compared in the step that adds it', async (t) => {
  const after = withAttempts(({ step, messages }) => ({
    messages: step === 1 ? messages : messages.map((one) => (one.role === 'tool' ? { ...one, content: 'midnight' } : one)),
  }));
  t.match(changes(recording(), after), [
    { kind: 'messages', step: 2, before: [{ content: 'noon' }], after: [{ content: 'midnight' }] },
  ]);
  const asked = withAttempts(({ messages }) => ({
    messages: messages.map((one) => (one === QUESTION ? { role: 'user', content: 'Which day?' } : one)),
  }));
  t.match(changes(recording(), asked), [{ kind: 'messages', step: 1, before: [QUESTION] }]);
});

t.test('other tool calls, and model calls more or less, are calls', async (t) => {
  const waiting = recording({ tools: [toolLine({ state: 'waits' })] });
  t.match(changes(recording(), waiting), [{ kind: 'calls', step: 1, before: [{ state: 'ran' }], after: [{ state: 'waits' }] }]);
  const [first] = recording().attempts;
  const shorter = recording({ attempts: first ? [first] : [] });
  t.match(changes(recording(), shorter), [{ kind: 'calls', step: 2, before: { connection: 'fast' }, after: null }]);
  t.match(changes(shorter, recording()), [{ kind: 'calls', step: 2, before: null, after: { connection: 'fast' } }]);
});

t.test('a call without a recorded result is missing, and after a model call without one nothing is compared', async (t) => {
  const [first] = recording().attempts;
  const call = { connection: 'fast', model: 'big-1' };
  const shorter = recording({
    attempts: first ? [first] : [],
    end: { type: 'end', status: 'length', answer: '', milliseconds: 0 },
  });
  const cut = recording({ end: { type: 'end', status: 'length', limit: 'max_steps', answer: '', milliseconds: 0 } });
  t.strictSame(changes(shorter, cut, { missing: [{ step: 2, call }], isCutShort: true }), [
    { kind: 'missing', step: 2, before: null, after: call },
  ]);
});

t.test('the answer and the status are those of the end', async (t) => {
  const end = {
    type: 'end',
    status: 'length',
    limit: 'max_steps',
    answer: 'The agent reached its limit.',
    milliseconds: 1,
  } as const;
  t.strictSame(changes(recording(), recording({ end })), [
    { kind: 'answer', step: 2, before: 'Noon.', after: 'The agent reached its limit.' },
    { kind: 'status', step: 2, before: 'stop', after: 'length (max_steps)' },
  ]);
});

t.test('the last attempt of a step counts, and a summary of earlier turns does not', async (t) => {
  const failed = { error: { kind: 'model', message: 'is busy' } as const, events: [] };
  const before = recording({
    attempts: [attempt({ step: 0, messages: [] }), attempt({ ...failed, connection: 'other' }), attempt({ attempt: 2 })],
    turn: turnLine({ connections: ['other', 'fast'] }),
    tools: [],
  });
  t.strictSame(changes(before, recording({ attempts: [attempt()], tools: [] })), []);
});

t.test('of a turn that its caller left, the calls that it was about to make are not compared', async (t) => {
  const end = { type: 'end', status: 'abandoned', answer: '', milliseconds: 1 } as const;
  t.strictSame(
    changes(
      recording({ end, attempts: recording().attempts.slice(0, 1), tools: [] }),
      recording({ end, attempts: recording().attempts.slice(0, 1) }),
    ),
    [],
  );
});

t.test('of a turn that its caller left, and that models went on with, the status is compared, and no further step', async (t) => {
  const end = { type: 'end', status: 'abandoned', answer: '', milliseconds: 1 } as const;
  const left = recording({ end, attempts: recording().attempts.slice(0, 1) });
  t.strictSame(changes(left, recording(), { isOpenEnded: true }), [
    { kind: 'status', step: 2, before: 'abandoned', after: 'stop' },
  ]);
});
