/**
 * Random sessions that meet every provider: whatever a turn leaves behind, the next one is
 * accepted, on any connection. The scripted servers refuse what the real ones refuse.
 *
 * `PLUGBOARD_SEED=7` plays other programs than usual.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '@plugboard/testing';
import t from 'tap';
import { LENGTH, rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { BrickPlayer } from './brick-player.js';
import { configOf, HISTORIES, type Provider, startProviders, TOOLS } from './every-provider.js';

const SEED = Number(process.env.PLUGBOARD_SEED ?? (LENGTH === 'soak' ? Date.now() % 1_000_000 : 1));
/** Programs: each plays two sessions at a time. */
const PROGRAMS = Number(process.env.PLUGBOARD_CASES ?? rounds({ short: 4, long: 40, soak: 400 }));
const STEPS = 6;
/** Refusals of images, which are then left out. */
const MEDIA = /image|download|MIME/i;

t.setTimeout(120_000 + PROGRAMS * 20_000);

t.test('the next turn of a random session is accepted by every provider (R-086)', async (t) => {
  const { providers, env, close } = await startProviders();
  t.teardown(close);
  const database = join(t.testdir({}), 'sessions.db');
  const start = (yaml: string) => startServer(yaml, { files: { 'tools.mjs': TOOLS }, env });
  const yamlOf = (order: readonly number[], prompt = 'Be brief.', history = 'truncate', more = '') =>
    configOf(providers, order, prompt, history, database, more);
  let app = await start(yamlOf([0]));
  t.teardown(() => app.stop());
  let turns = 0;
  for (let seed = SEED; seed < SEED + PROGRAMS; seed++) {
    const random = seeded(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const indexes = providers.map((_, index) => index);
    // Their own formats have more to lose than the presets.
    const natives = indexes.filter((index) => providers[index]?.name.startsWith('native-'));
    const any = () => pick(random() < 0.6 ? natives : indexes);
    const reconfigure = async (yaml: string) => {
      await writeFile(join(app.folder, 'plugboard.yaml'), yaml);
      t.equal((await app.server.reload()).refused, undefined);
    };
    const refused = providers.map(({ refusals }) => refusals.length);
    const players = ['a', 'b'].map((name) => new BrickPlayer(`s${seed}${name}`, random));
    const notes: string[] = [];
    for (let step = 0; step < STEPS; step++) {
      const order = [...new Set([any(), any()])];
      const more = pick(['', ', approve: [kit/erase]', ', approve: [kit/erase, kit/lookup]']);
      const yaml = yamlOf(order, pick(['Be brief.', 'Be kind.']), pick(HISTORIES), more);
      notes.push(`${order.map((index) => providers[index]?.name)}${more}`);
      if (random() < 0.15) {
        // Nothing stays in memory.
        await app.stop();
        app = await start(yaml);
      } else await reconfigure(yaml);
      for (const index of order) if (random() < 0.3) providers[index]?.failAfter(Math.floor(random() * 3), 404);
      await Promise.all(players.map((player) => player.play(app.url)));
      turns += players.length;
      for (const index of order) providers[index]?.recover();
    }
    for (const index of indexes) {
      if (index % 4 !== seed % 4) continue;
      const { name } = providers[index] as Provider;
      await reconfigure(yamlOf([index]));
      for (const player of players) {
        turns++;
        t.equal(await player.greet(app.url), undefined, `session of ${seed} on ${name}`);
      }
    }
    for (const [index, { name, refusals }] of providers.entries()) {
      const others = refusals.slice(refused[index]).filter((refusal) => !MEDIA.test(refusal));
      t.same(others, [], `${name} refused nothing of ${seed}`);
      if (others.length > 0) t.comment([...notes, ...players.flatMap(({ log }) => log)].join('\n'));
    }
  }
  const refusals = providers.flatMap(({ refusals }) => refusals);
  t.comment(`${turns} turns, ${refusals.length} refused requests, all for images`);
  await rm(database, { force: true });
});
