import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Interceptors } from '@plugboard/kernel';
import { Commands } from '@plugboard/kernel/contracts';
import {
  checkOptions,
  commandContract,
  eventually,
  interceptorContract,
  ManualClock,
  pluginContract,
  testContext,
} from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import type { Recorder } from '../src/record/recorder.js';
import { recording, turnLine } from './recordings.js';

const NEVER = new AbortController().signal;

/** A recorder whose folder is new. */
function open(t: Test, config: object = {}) {
  const folder = t.testdir();
  const clock = new ManualClock();
  const ctx = testContext(plugin, { config, folder, clock, entry: 'plugins.record' });
  return { ctx, clock, recorder: ctx.lifecycle as Recorder, path: join(folder, 'data/recordings') };
}

/** A recording of its own minute. */
const nth = (minute: number) => recording({ turn: turnLine({ id: `turn_${minute}`, at: minute * 60_000 }) });

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('fulfils the interceptor contract', async (t) => {
  interceptorContract(t.test, { open: () => testContext(plugin).contributed(Interceptors) });
});

for (const name of ['replay', 'rehearse']) {
  t.test(`fulfils the command contract: ${name}`, async (t) => {
    commandContract(t.test, { command: testContext(plugin).contributed(Commands, name) });
  });
}

t.test('refuses agents that do not exist', async (t) => {
  const { faults } = checkOptions(
    plugin,
    { agents: ['assistent'] },
    {
      entries: (section) => (section === 'agents' ? ['assistant'] : ['fast']),
    },
  );
  t.strictSame(faults, ['agents[0]: no agent or model "assistent", did you mean "assistant"?']);
});

t.test('recordings are written after their turns, and those that are left before the stop', async (t) => {
  const { recorder, path } = open(t);
  await recorder.start();
  for (const minute of [1, 2, 3]) {
    t.ok(recorder.grow(1000));
    t.equal(recorder.done(nth(minute), 1000), undefined, 'nothing to wait for');
  }
  t.strictSame(await readdir(path), []);
  await recorder.stop(NEVER);
  t.strictSame(
    (await readdir(path)).map((name) => name.replace(/^\S+-/, '')),
    ['turn_1.jsonl', 'turn_2.jsonl', 'turn_3.jsonl'],
  );
  await recorder.stop(NEVER);
});

t.test('a stop that is out of time says how many recordings it has cut', async (t) => {
  const { recorder, path } = open(t);
  await recorder.start();
  for (const minute of [1, 2, 3]) recorder.done(nth(minute), 0);
  await t.rejects(recorder.stop(AbortSignal.abort()), {
    message: /^[23] recordings were not written: \S+recordings is too slow$/,
  });
  recorder.done(nth(4), 0);
  await eventually(async () => (await readdir(path)).join() === '19700101T000100000Z-turn_1.jsonl');
});

t.test('turns that hold more than the memory for recordings are not recorded, which is said once', async (t) => {
  const { ctx, recorder } = open(t, { maxBytes: '32mb' });
  const half = 9 * 2 ** 20;
  t.ok(recorder.grow(half));
  for (let turn = 0; turn < 5; turn++) t.notOk(recorder.grow(half));
  const [report] = ctx.budgets.reports().filter(({ setting }) => setting === 'plugins.record.maxBytes');
  t.match(report, { name: 'recordings that are not written yet', limit: 16 * 2 ** 20, refused: 5 });
  t.strictSame(
    ctx.logs.map(({ msg }) => msg),
    ['limit reached: recordings that are not written yet; raise plugins.record.maxBytes if this is legitimate load'],
  );
  recorder.done(undefined, half);
  t.ok(recorder.grow(half), 'what a turn held is free again');
});

t.test('a folder that cannot be written is logged once a minute, and recovers', async (t) => {
  const { ctx, clock, recorder, path } = open(t);
  await writeFile(join(path, '../..', 'data'), 'a file in the way');
  await recorder.start();
  for (const minute of [1, 2, 3]) {
    recorder.done(nth(minute), 0);
    await eventually(() => recorder.health().state === 'degraded');
  }
  t.match(recorder.health(), {
    state: 'degraded',
    reason: /^recordings cannot be written: E\w+: .*; check plugins\.record\.path$/,
  });
  t.match(ctx.logs, [{ level: 'warn', msg: 'recordings cannot be written; check plugins.record.path', err: { code: /^E/ } }]);
  await rm(join(path, '../..', 'data'));
  recorder.done(nth(4), 0);
  await eventually(() => recorder.health().state === 'ok');
  t.match(await readdir(path), [/turn_4\.jsonl$/]);
  clock.advance(60_000);
  await recorder.stop(NEVER);
});

t.test('the oldest files are deleted while turns end', async (t) => {
  const { recorder, clock, path } = open(t, { keep: 2 });
  await recorder.start();
  for (let minute = 1; minute <= 10; minute++) recorder.done(nth(minute), 0);
  const turns = async () => (await readdir(path)).map((name) => /turn_\d+\.jsonl$/.exec(name)?.[0]).sort();
  await eventually(async () => {
    clock.advance(1000);
    return String(await turns()) === 'turn_10.jsonl,turn_9.jsonl';
  });
  await recorder.stop(NEVER);
});
