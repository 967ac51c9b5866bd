import t from 'tap';
import type { StreamEncoder } from '../src/index.js';
import { streamEncoderContract } from '../src/testing/index.js';

const SSE: StreamEncoder = {
  headers: { 'content-type': 'text/event-stream' },
  before: 'data: ',
  after: '\n\n',
  done: 'data: [DONE]\n\n',
  comment: (text) => `: ${text.replaceAll('\n', ' ')}\n\n`,
  keepAliveEvery: 15_000,
};

async function failing(change: Partial<StreamEncoder>): Promise<readonly string[]> {
  const cases: [string, () => Promise<void>][] = [];
  streamEncoderContract((name, run) => cases.push([name, run]), { encoder: { ...SSE, ...change } });
  const found: string[] = [];
  for (const [name, run] of cases) await run().catch(() => found.push(name));
  return found;
}

t.test('the suite of stream encoders finds each broken promise', async (t) => {
  t.same(await failing({}), []);
  t.same(await failing({ headers: {} }), ['has valid headers with a content type']);
  t.same(await failing({ before: '', after: '' }), ['separates frames']);
  t.same(await failing({ done: '' }), ['has a last frame unlike any other']);
  for (const comment of [(text: string) => `: ${text}`, (text: string) => `data: ${text}\n\n`]) {
    t.same(await failing({ comment }), ['makes a comment a complete frame that is not an event']);
  }
  t.same(await failing({ keepAliveEvery: 0 }), ['has an interval for comments']);
});
