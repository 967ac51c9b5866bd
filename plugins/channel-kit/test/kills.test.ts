import type { StateStore } from '@plugboard/kernel';
import { MemoryState } from '@plugboard/store-memory';
import { eventually, ManualClock, ScriptedRuntime, SequentialIds } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { rounds } from '../../../test/support/rounds.js';
import { openStore } from '../../store-sqlite/test/open-store.js';
import { MortalState } from './mortal-state.js';
import { keysOf, opened } from './open-channel.js';
import { ScriptedPlatform } from './scripted-platform.js';

/** What is said, in three chats: turns, commands, a long answer, and one that only a stop ends. */
const SAID = [
  ['Hi', 'c1'],
  ['Hi', 'c2'],
  ['/agent other', 'c1'],
  ['A long one', 'c1'],
  ['/new', 'c2'],
  ['Again', 'c2'],
  ['Forever', 'c3'],
  ['/stop', 'c3'],
] as const;

/**
 * Tells the platform what `SAID` says, once each is taken: what was not acknowledged is told again,
 * as platforms do.
 */
async function tell(platform: ScriptedPlatform, acknowledged: Set<number>, isDead: () => boolean): Promise<void> {
  for (const [index, [text, chat]] of SAID.entries()) {
    if (acknowledged.has(index)) continue;
    await platform.say(text, chat, { ids: [`u${index}`], id: `u${index}` });
    if (isDead()) return;
    acknowledged.add(index);
  }
}

/** One life over what the earlier ones left. */
async function live(
  store: StateStore,
  killAt: number,
  isKilledAfter: boolean,
  world: { readonly platform: ScriptedPlatform; readonly acknowledged: Set<number>; readonly ids: SequentialIds },
): Promise<boolean> {
  const state = new MortalState(store, killAt, isKilledAfter);
  const platform = new ScriptedPlatform();
  platform.limit = 10;
  // The platform outlives the process: it knows a part that it has.
  platform.send = async (message) => {
    if (state.isDead) return new Promise(() => {});
    const has = world.platform.sent.some(({ id, index }) => id === message.id && index === message.index);
    if (has && !message.mayHaveArrived) throw new Error('it was sent again, and nothing says so');
    if (!has) world.platform.sent.push(message);
    return { kind: 'sent' };
  };
  const runtime = new ScriptedRuntime({ agents: ['helper', 'other'], state });
  const run = runtime.run.bind(runtime);
  runtime.run = (request) => {
    const text = request.messages.at(-1)?.content;
    runtime.enqueue(text === 'Forever' ? { after: new Promise(() => {}) } : { text: `${request.target.name} answers: ${text}` });
    return run(request);
  };
  const life = opened({ platform, runtime, state, clock: new ManualClock(), ids: world.ids });
  const done = (async () => {
    await life.start();
    await tell(platform, world.acknowledged, () => state.isDead);
    await eventually(async () => state.isDead || (await keysOf(store)).every((key) => /^kit\/(id|chat)\//.test(key)));
    if (!state.isDead) await life.stop();
  })();
  await Promise.race([done, state.killed]);
  return state.isDead;
}

/** Each game begins with nothing. */
async function clear(store: StateStore): Promise<void> {
  const entry = 'transports.desk';
  const keys = await keysOf(store);
  await store.change(keys.map((key) => ({ entry, key, text: undefined })));
}

const STORES: Readonly<Record<string, (t: Test) => StateStore>> = {
  memory: () => new MemoryState(new ManualClock()),
  SQLite: (t) => {
    const { store, close } = openStore(t.testdir());
    t.teardown(close);
    return store.state;
  },
};

const GAMES = Object.keys(STORES).flatMap((name) => [false, true].map((isKilledAfter) => [name, isKilledAfter] as const));

for (const [name, isKilledAfter] of GAMES) {
  const when = isKilledAfter ? 'after' : 'before';
  t.test(`CH-6 killed at every change, ${when} it, nothing is lost or doubled over ${name}`, async (t) => {
    const store = STORES[name]?.(t) ?? new MemoryState(new ManualClock());
    let kills = 0;
    const step = name === 'SQLite' ? rounds({ short: 3, long: 1, soak: 1 }) : 1;
    for (let killAt = 1; ; killAt += step) {
      const world = { platform: new ScriptedPlatform(), acknowledged: new Set<number>(), ids: new SequentialIds() };
      await clear(store);
      const wasKilled = await live(store, killAt, isKilledAfter, world);
      if (wasKilled) kills += 1;
      await live(store, Number.POSITIVE_INFINITY, false, world);
      const said = (chat: string) => {
        const replies = Map.groupBy(
          world.platform.sent.filter((one) => one.chat === chat),
          ({ id }) => id,
        );
        return [...replies.values()].map((parts) => parts.map(({ text }) => text).join(''));
      };
      t.strictSame(
        said('c1'),
        ['helper answers: Hi', 'The agent other answers here now.', 'other answers: A long one'],
        `c1, killed at change ${killAt}`,
      );
      t.strictSame(
        said('c2'),
        ['helper answers: Hi', 'A new conversation begins.', 'helper answers: Again'],
        `c2, killed at change ${killAt}`,
      );
      t.match(
        said('c3'),
        [/^(?:Stopped\.|Nothing is running\. 1 waiting message was dropped\.)$/],
        `c3, killed at change ${killAt}`,
      );
      t.equal(said('c3').length, 1);
      if (!wasKilled) break;
    }
    t.comment(`${kills} kills`);
    t.ok(kills > 20 / step);
  });
}
