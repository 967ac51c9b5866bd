import { definePlugin, type PluginState } from '@plugboard/kernel';
import { testContext } from '@plugboard/testing';
import t from 'tap';
import { OwnKey } from '../src/thinking/own-key.js';
import { SealedExtras } from '../src/thinking/sealed-extras.js';

/** The state of an entry, as several servers with one store have it. */
function sharedState(): PluginState {
  let state: PluginState | undefined;
  const plugin = definePlugin({
    name: 'keeper',
    apiVersion: 1,
    summary: 'Keeps a key',
    configSchema: { type: 'object', properties: {} },
    register(ctx) {
      state = ctx.state;
      return { stop() {} };
    },
  });
  testContext(plugin);
  if (state === undefined) throw new Error('there is no state');
  return state;
}

t.test('PG-25 servers that start together keep one key', async (t) => {
  const state = sharedState();
  const keys = await Promise.all(Array.from({ length: 8 }, () => new OwnKey(state, 'key').load()));
  t.equal(keys[0]?.length, 32);
  t.equal(new Set(keys.map((key) => Buffer.from(key).toString('hex'))).size, 1);
  t.same(await new OwnKey(state, 'key').load(), keys[0], 'and find it again');
  t.notSame(await new OwnKey(state, 'other').load(), keys[0]);

  const [one, two] = await Promise.all([new SealedExtras(state).for('p'), new SealedExtras(state).for('p')]);
  const token = one?.seal({ calls: {} }) ?? '';
  t.same(two?.open(token), { calls: {} }, 'what one has sealed, the other opens');
});

t.test('a key that the store did not keep is not used', async (t) => {
  const state = sharedState();
  await state.put('key', 'short');
  const key = new OwnKey(state, 'key');
  await t.rejects(key.load(), /did not keep the key/);
  await state.delete('key');
  t.equal((await key.load()).length, 32, 'the next call tries again');
});
