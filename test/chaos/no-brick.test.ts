/**
 * Random sessions that meet every provider: whatever a turn leaves behind, the next one is
 * accepted, on any connection. The scripted servers refuse what the real ones refuse.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { CLIENT_TOOL, CONTENTS, configOf, HISTORIES, type Provider, startProviders, TOOLS } from './every-provider.js';

t.setTimeout(600_000);

t.test('the next turn of a random session is accepted by every provider (R-086)', async (t) => {
  const { providers, env, close } = await startProviders();
  t.teardown(close);
  const first = configOf(providers, [0], 'Be brief.', 'truncate');
  const app = await startServer(first, { files: { 'tools.mjs': TOOLS }, env });
  t.teardown(() => app.stop());
  let turns = 0;
  for (let seed = 1; seed <= rounds({ short: 6, long: 60, soak: 600 }); seed++) {
    const random = seeded(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const indexes = providers.map((_, index) => index);
    const say = async (content: unknown, fields: object = {}, signal?: AbortSignal): Promise<string | undefined> => {
      turns++;
      const extra = random() < 0.2 ? [{ role: 'system', content: 'Speak like a pirate.' }] : [];
      const response = await fetch(`${app.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'mixed',
          session_id: `s${seed}`,
          messages: [...extra, { role: 'user', content }],
          ...fields,
        }),
        ...(signal ? { signal } : {}),
      });
      const text = await response.text();
      return response.status === 200 && !text.includes('"error"') ? undefined : `${response.status} ${text}`;
    };
    const answerWith = async (order: readonly number[]) => {
      await writeFile(
        join(app.folder, 'plugboard.yaml'),
        configOf(providers, order, pick(['Be brief.', 'Be kind.']), pick(HISTORIES)),
      );
      t.equal((await app.server.reload()).refused, undefined);
    };
    for (let turn = 0; turn < 6; turn++) {
      await answerWith([pick(indexes), pick(indexes)].filter((one, at, all) => all.indexOf(one) === at));
      const provider = pick(providers);
      if (random() < 0.3) provider.fail(404);
      const isLeft = random() < 0.2;
      const signal = isLeft ? AbortSignal.timeout(1 + Math.floor(random() * 10)) : undefined;
      const fields = { ...(random() < 0.5 ? { stream: true } : {}), ...(random() < 0.2 ? { tools: [CLIENT_TOOL] } : {}) };
      await say(pick(CONTENTS), fields, signal).catch(() => undefined);
    }
    const refusedBefore = providers.map(({ refusals }) => refusals.length);
    for (const index of indexes) {
      if (index % 4 !== seed % 4) continue;
      const { name } = providers[index] as Provider;
      await answerWith([index]);
      let failure = await say('Still there?');
      // Errors that were scripted for earlier turns, which asked another provider.
      while (failure?.includes('answered 404')) failure = await say('Still there?');
      t.equal(failure, undefined, `session ${seed} on ${name}`);
    }
    for (const [index, { name, refusals }] of providers.entries())
      t.same(refusals.slice(refusedBefore[index]), [], `${name} refused nothing of session ${seed}`);
  }
  t.comment(`${turns} turns, ${providers.reduce((sum, { refusals }) => sum + refusals.length, 0)} refused requests`);
});
