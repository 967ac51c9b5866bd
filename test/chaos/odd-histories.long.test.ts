/** Odd conversations meet every provider: each one takes them, and answers the next message. */
import { startServer } from '@plugboard/testing';
import t from 'tap';
import { configOf, startProviders, TOOLS } from './every-provider.js';
import { ODD_HISTORIES } from './odd-histories.js';

/** Refusals of images and files, which are then left out. */
const MEDIA = /image|download|MIME|document name/i;

t.setTimeout(300_000);

t.test('every provider accepts a conversation of any kind (R-086)', async (t) => {
  const { providers, env, close } = await startProviders();
  t.teardown(close);
  const agents = providers.map(
    ({ name }, index) => `  ${name}: { model: m${index}, tools: [kit] }\n  bare-${name}: { model: m${index} }`,
  );
  const yaml = `${configOf(providers, [0], 'x', 'truncate')}${agents.join('\n')}\n`;
  const app = await startServer(yaml, { files: { 'tools.mjs': TOOLS }, env });
  t.teardown(() => app.stop());
  for (const [odd, messages] of Object.entries(ODD_HISTORIES)) {
    for (const { name, refusals } of providers) {
      // Its surface refuses what no connection of an agent takes.
      if (name === 'deepseek' && /image|file/.test(odd)) continue;
      for (const model of [name, `bare-${name}`]) {
        const before = refusals.length;
        const response = await fetch(`${app.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model, messages: [...messages, { role: 'user', content: 'Hello' }] }),
        });
        t.equal(response.status, 200, `${odd}: ${model} ${await response.text()}`);
        const others = refusals.slice(before).filter((refusal) => !MEDIA.test(refusal));
        t.same(others, [], `${odd}: ${model} refused nothing but images`);
      }
    }
  }
});
