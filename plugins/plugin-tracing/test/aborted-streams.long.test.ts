import t from 'tap';
import { tracedServer } from './traced-server.js';

/** Never resolves. */
const FOREVER = new Promise<never>(() => {});

t.test('OB-2 each span of 1,000 aborted streams ends once', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t);
  model.respond({ text: ['Hello', FOREVER] });
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const abort = new AbortController();
        const { body } = await ask({ stream: true }, {}, abort.signal);
        for await (const chunk of body ?? []) {
          if (!String(Buffer.from(chunk)).includes('Hello')) continue;
          abort.abort();
          break;
        }
      }).map((aborted) => aborted.catch((error) => t.equal(error.name, 'AbortError'))),
    );
  }
  await stop();
  t.equal(collector.spans.length, 3000);
  t.equal(new Set(collector.spans.map(({ spanId }) => spanId)).size, 3000, 'each arrives once');
  const errors = (name: string) => [...new Set(collector.named(name).map(({ attributes }) => attributes['error.type']))];
  t.strictSame(errors('chat scripted'), ['abandoned']);
  t.strictSame(errors('invoke_agent helper'), ['abandoned']);
  t.strictSame(errors('POST /v1/chat/completions'), ['cancelled_by_client']);
});
