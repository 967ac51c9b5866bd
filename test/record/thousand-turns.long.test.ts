import t from 'tap';
import { saying } from '../support/test-server.js';
import { RecordedServer } from './support.js';

t.test('1,000 turns are rehearsed, and one changed word is found in each', async (t) => {
  const server = await RecordedServer.start(t);
  const { app } = server;
  app.models.respond(({ body }) =>
    body.messages.at(-1)?.role === 'tool'
      ? { text: 'Open.' }
      : { toolCalls: [{ name: 'desk__look', arguments: { ticket: body.messages.length } }] },
  );
  for (let round = 0; round < 100; round++) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => app.chat(saying(`Look ${round}.${index}`))));
  }
  await server.files(1000);
  const started = performance.now();
  const same = await server.rehearse();
  const seconds = (performance.now() - started) / 1000;
  t.match(same, { code: 0, turns: 1000, same: 1000, changed: 0, failed: 0 });
  t.comment(`1,000 turns with a tool rehearsed in ${seconds.toFixed(1)} s`);
  t.match(await server.rehearse((config) => config.replace('careful', 'quick')), {
    code: 1,
    turns: 1000,
    changed: 1000,
    kinds: { prompt: 1000 },
  });
});
