import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import t from 'tap';

/**
 * Returns the MiB of the young generation after many objects survived, in a process of its own: one
 * without the compiler of the tests, which would take more before the bound.
 */
async function sizeAfterLoad(...options: readonly string[]): Promise<number> {
  const program = `
    import { setImmediate } from 'node:timers/promises';
    import { getHeapSpaceStatistics } from 'node:v8';
    import { boundYoungGeneration } from ${JSON.stringify(import.meta.resolve('../src/running/young-generation.ts'))};
    boundYoungGeneration();
    const kept = [];
    for (let round = 0; round < 1_000; round++) {
      for (let at = 0; at < 1_000; at++) kept[(round % 20) * 1_000 + at] = [round, [at]];
      await setImmediate();
    }
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    console.log(young.space_size / 2 ** 20);
  `;
  const child = spawn(process.execPath, [...options, '--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return Number(await text(child.stdout));
}

t.test('the young generation grows to 16 MiB under load, and no further', async (t) => {
  const size = await sizeAfterLoad();
  t.ok(size > 8 && size < 18, `${size} MiB`);
});

t.test('an option of the operator for the young generation counts', async (t) => {
  t.ok((await sizeAfterLoad('--max-semi-space-size=32')) > 18);
});
