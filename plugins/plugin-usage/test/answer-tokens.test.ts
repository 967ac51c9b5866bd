import type { ModelEvent } from '@plugboard/kernel';
import { NO_USAGE, type Usage } from '@plugboard/kernel/contracts';
import { modelRequest } from '@plugboard/testing';
import t from 'tap';
import { AnswerMeter } from '../src/money/answer-tokens.js';

const END: ModelEvent = { type: 'end', reason: 'stop' };
/** As the estimate of `modelRequest('Hello')` counts it. */
const SENT = tokensOf([{ type: 'text', text: 'x' }]).input;

function tokensOf(events: readonly ModelEvent[]) {
  const meter = new AnswerMeter(modelRequest('Hello'));
  for (const event of events) meter.take([event]);
  return meter.tokens();
}

const counted = (counts: Partial<Usage>): ModelEvent => ({ type: 'usage', usage: { ...NO_USAGE, ...counts } });
const text = (length: number): ModelEvent => ({ type: 'text', text: 'x'.repeat(length) });

t.test('OB-9 counts of the model server are taken as they are', async (t) => {
  const counts = { promptTokens: 100, cachedTokens: 60, cacheWriteTokens: 30, completionTokens: 50, reasoningTokens: 20 };
  t.strictSame(tokensOf([text(8), counted(counts), END]), {
    input: 100,
    cached: 60,
    cacheWrite: 30,
    output: 50,
    reasoning: 20,
    isEstimated: false,
  });
  t.match(
    tokensOf([counted({ promptTokens: 1 }), counted(counts), END]),
    { input: 100 },
    'a later count replaces an earlier one',
  );
});

t.test('OB-9 parts that exceed their total count, and the call is estimated', async (t) => {
  const parts = { promptTokens: 10, cachedTokens: 60, cacheWriteTokens: 30, completionTokens: 5, reasoningTokens: 20 };
  t.match(tokensOf([counted(parts), END]), {
    input: 90,
    cached: 60,
    cacheWrite: 30,
    output: 20,
    reasoning: 20,
    isEstimated: true,
  });
});

t.test('OB-12 what is not counted, or cannot be, is estimated', async (t) => {
  t.ok(SENT > 5 && SENT < 30, String(SENT));
  t.strictSame(
    tokensOf([text(400), { type: 'reasoning', text: 'x'.repeat(40) }, END]),
    { input: SENT, cached: 0, cacheWrite: 0, output: 110, reasoning: 10, isEstimated: true },
    'without usage',
  );
  const odd = [-1, Number.NaN, Number.POSITIVE_INFINITY, 1.5, 2 ** 60, '7' as never];
  for (const promptTokens of odd) {
    t.match(tokensOf([text(4), counted({ promptTokens, completionTokens: 1 }), END]), {
      input: SENT,
      output: 1,
      isEstimated: true,
    });
  }
  for (const completionTokens of odd) {
    const tokens = tokensOf([text(4), counted({ promptTokens: 9, completionTokens }), END]);
    t.match(tokens, { input: 9, output: 1, isEstimated: true });
  }
  for (const cachedTokens of odd) {
    t.match(tokensOf([counted({ promptTokens: 9, cachedTokens }), END]), { input: 9, cached: 0, isEstimated: true });
  }
  t.match(tokensOf([counted({ promptTokens: 9 }), END]), { output: 0, isEstimated: false }, 'an empty answer has no tokens');
});

t.test('OB-12 an answer that broke off has at least the tokens that arrived', async (t) => {
  const early = counted({ promptTokens: 9, completionTokens: 1 });
  t.match(tokensOf([early, text(400)]), { input: 9, output: 100, isEstimated: true });
  t.match(tokensOf([early]), { input: 9, output: 1, isEstimated: true });
  const call = { type: 'tool-call', id: 'a', name: 'note', arguments: 'x'.repeat(396) } as const;
  const piece = { type: 'tool-call-delta', id: 'a', name: 'note', arguments: 'x'.repeat(396) } as const;
  t.match(tokensOf([early, piece]), { output: 99 });
  t.match(tokensOf([early, piece, call]), { output: 100 }, 'a call counts once');
});
