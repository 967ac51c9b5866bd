/**
 * Sessions of a real process that is killed in the middle of its turns, over a SQLite file: what
 * each life left is accepted by every provider, signatures and all.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startServer } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { CONTENTS, configOf, HISTORIES, startProviders, TOOLS } from './every-provider.js';
import { Victim } from './victim.js';

const SESSIONS = rounds({ short: 1, long: 3, soak: 30 });
/** Lives of the server in each round, which has two sessions at a time. */
const LIVES = 6;

t.setTimeout(120_000 + SESSIONS * 120_000);

t.test('every provider accepts the sessions of a server that was killed (R-063, R-086)', async (t) => {
  let onRequest = () => {};
  const { providers, env, close } = await startProviders(() => onRequest());
  t.teardown(close);
  let cut = 0;
  let interrupted = 0;
  for (let seed = 1; seed <= SESSIONS; seed++) {
    const random = seeded(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const sessions = [`${seed}a`, `${seed}b`];
    const natives = providers.flatMap(({ name }, index) => (name.startsWith('native-') ? [index] : []));
    const folder = t.testdir({ 'tools.mjs': TOOLS });
    const database = join(folder, 'sessions.db');
    const victim = new Victim(t, folder, env);
    const prompt = () => pick(['Be brief.', 'Be brief.', 'Be kind.']);
    for (let life = 0; life < LIVES; life++) {
      // Most lives have the connection of the one before, so that its signatures are sent again.
      const order = [natives[(seed + (life >> 2)) % natives.length] ?? 0, pick(natives)];
      await writeFile(
        join(folder, 'plugboard.yaml'),
        configOf(providers, [...new Set(order)], prompt(), pick(HISTORIES), database),
      );
      const url = await victim.start();
      interrupted += victim.log.filter(({ event }) => event === 'turn_interrupted').length;
      for (const session of sessions)
        t.equal(await say(url, session, 'Use the tools'), undefined, `the first turn of life ${life} of session ${session}`);
      // A kill at the n-th request of a turn, or some time after it.
      const asked = Promise.withResolvers<void>();
      let left = 1 + Math.floor(random() * 3);
      onRequest = () => {
        if (--left === 0) asked.resolve();
      };
      const turns = Promise.all(sessions.map((session) => say(url, session, pick(CONTENTS)).catch(() => 'cut')));
      await Promise.race([asked.promise, turns]);
      await wait(random() * 10);
      await victim.kill();
      cut += (await turns).filter((outcome) => outcome === 'cut').length;
      onRequest = () => {};
    }
    const refusedBefore = providers.map(({ refusals }) => refusals.length);
    const yaml = (index: number) => configOf(providers, [index], 'Be brief.', 'truncate', database);
    const app = await startServer(yaml(0), { files: { 'tools.mjs': TOOLS }, env });
    for (const [index, { name }] of providers.entries()) {
      await writeFile(join(app.folder, 'plugboard.yaml'), yaml(index));
      t.equal((await app.server.reload()).refused, undefined);
      for (const session of sessions)
        t.equal(await say(app.url, session, 'Still there?'), undefined, `session ${session} on ${name}`);
    }
    for (const [index, { name, refusals }] of providers.entries())
      t.same(refusals.slice(refusedBefore[index]), [], `${name} refused nothing of session ${seed}`);
    await app.stop();
  }
  t.ok(cut > 0, `${cut} turns were cut`);
  t.ok(interrupted > 0, `${interrupted} of them were found at the next start`);
});

/** @returns what went wrong. @throws if the connection breaks. */
async function say(url: string, session: string, content: unknown): Promise<string | undefined> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'mixed', session_id: `s${session}`, messages: [{ role: 'user', content }] }),
  });
  const text = await response.text();
  return response.status === 200 && !text.includes('"error"') ? undefined : `${response.status} ${text}`;
}
