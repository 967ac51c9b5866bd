/**
 * Runs turns against the store of a folder, in several sessions at once and without an end, until it is killed. Writes a line to its standard
 * output for each that it knows to be kept: `key turn`, and `ready` before the first.
 */
import { writeSync } from 'node:fs';
import { crashTurn, KEYS, seeded } from './crash-turns.js';
import { openStore, session } from './opened.js';

const [, , folder = '', seed = '1'] = process.argv;
const random = seeded(Number(seed));
const { store } = openStore(folder);

async function run(key: string): Promise<never> {
  for (let i = 0; ; i++) {
    const { version } = await store.load(session(key));
    const turnId = `turn_${seed}_${key}_${i}`;
    const messages = crashTurn(version + 1, random);
    await store.begin(session(key), { turnId, input: messages.slice(0, 1) });
    if (random() < 0.1) {
      await store.abandon(session(key), turnId);
      continue;
    }
    await store.commit(session(key), { turnId, expected: version, messages });
    writeSync(1, `${key} ${version + 1}\n`);
  }
}

writeSync(1, 'ready\n');
await Promise.all(KEYS.map(run));
