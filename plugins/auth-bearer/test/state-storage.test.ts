import { setImmediate } from 'node:timers/promises';
import { CommandError } from '@plugboard/kernel/contracts';
import { CapturedLog, eventually, ManualClock, testContext } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { IssuedTokens } from '../src/provider/issued-tokens.js';
import { StateStorage } from '../src/storage/state-storage.js';
import type { TokenRecord } from '../src/tokens/token-record.js';
import { record } from './token-fixtures.js';

const SECOND = record({ id: 'tok_0000000000000002', createdAt: '2025-01-01T00:00:00.000Z', sha256: 'a'.repeat(64) });
const add = (added: TokenRecord) => (records: readonly TokenRecord[]) => ({ records: [...records, added], result: added.id });

/** A storage, and the state that it is in. */
function opened() {
  const clock = new ManualClock();
  const { state } = testContext(plugin, { clock });
  return { clock, state, storage: new StateStorage(state, () => clock.now()) };
}

t.test('changes at once lose nothing, and change the signature', async (t) => {
  const { storage } = opened();
  const before = await storage.signature();
  t.strictSame(await Promise.all([storage.change(add(record())), storage.change(add(SECOND))]), [
    'tok_0000000000000001',
    'tok_0000000000000002',
  ]);
  t.strictSame(await storage.read(), [SECOND, record()], 'in the order of their creation');
  const after = await storage.signature();
  t.not(after, before);
  t.equal(await storage.change((records) => ({ records, result: 'nothing' })), 'nothing');
  t.equal(await storage.signature(), after);
});

t.test('a change that is refused, or whose store fails, is an error of the command', async (t) => {
  const { storage, state } = opened();
  const refused = () => {
    throw new CommandError('it exists');
  };
  await t.rejects(storage.change(refused), { name: 'CommandError', message: 'it exists' });
  await state.put('token/tok_1', { id: 'tok_1' });
  const damaged = 'the issued tokens in the database are damaged: tokens[0] has an invalid field "id". Restore a backup';
  await t.rejects(storage.change(add(record())), {
    name: 'CommandError',
    message: `the issued tokens were not changed: ${damaged}`,
  });
  await t.rejects(storage.read(), { name: 'TokensUnusable', message: damaged });
});

t.test('the later of two uses stays', async (t) => {
  const { storage } = opened();
  await storage.addUses(new Map([['tok_1', 2_000]]));
  await storage.addUses(
    new Map([
      ['tok_1', 1_000],
      ['tok_2', 1_000],
    ]),
  );
  t.strictSame(
    [...(await storage.lastUses())],
    [
      ['tok_1', 2_000],
      ['tok_2', 1_000],
    ],
  );
});

t.test('while the store does not answer, the last good list stays in effect', async (t) => {
  const { storage, clock, state } = opened();
  await storage.change(add(record()));
  let failure: Error | undefined;
  const get = state.get.bind(state);
  const flaky = Object.assign(Object.create(state), {
    get: async (key: string) => {
      if (failure) throw failure;
      return get(key);
    },
    list: (...page: Parameters<typeof state.list>) => state.list(...page),
  });
  const log = new CapturedLog();
  const storages = { current: new StateStorage(flaky, () => clock.now()), unusedFile: async () => undefined };
  const tokens = new IssuedTokens({ entries: () => ['acme'], clock, log: log.logger(clock) }, storages);
  t.teardown(() => tokens.stop());
  await tokens.start();
  const check = async () => {
    const { pending } = clock;
    clock.advance(2_000);
    await setImmediate();
    await eventually(() => clock.pending >= pending);
  };
  failure = new Error('no connection');
  await check();
  await check();
  t.match(tokens.find(record().sha256)?.result, { principal: {} });
  t.match(log.lines, [
    { level: 'error', err: { message: 'no connection' }, msg: 'the database cannot be used; the last good list stays in effect' },
  ]);
  failure = undefined;
  await check();
  t.match(log.lines.at(-1), { level: 'info', msg: 'the database can be used again' });
});
