import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ToolSources } from '@plugboard/kernel';
import { pluginContract, SequentialIds, testContext, testToolCall, toolSourceContract } from '@plugboard/testing';
import plugin from '../src/index.ts';

/** The plugin's tool source, with these options and these random numbers. */
function source(config: object = {}, fractions: readonly [number, ...number[]] = [0.5]) {
  return testContext(plugin, { config, ids: new SequentialIds(fractions) }).contributed(ToolSources);
}

async function roll(from: ReturnType<typeof source>, input: Record<string, unknown>) {
  const [tool] = await from.tools(new AbortController().signal);
  return tool?.run(input, testToolCall());
}

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url) });
toolSourceContract(test, { open: () => source(), calls: [{ tool: 'roll', input: { dice: 2 } }] });

test('rolls as many dice as the model asks for and adds them up', async () => {
  assert.equal(await roll(source({}, [0, 0.5, 0.999]), { dice: 3 }), '1 + 4 + 6 = 11');
});

test('rolls one die with the configured number of sides by default', async () => {
  assert.equal(await roll(source({ sides: 20 }, [0.999]), {}), '20 = 20');
  assert.equal(await roll(source({ sides: 20 }, [0.999]), { sides: 2 }), '2 = 2');
});

test('refuses a die with one side', () => {
  assert.throws(() => source({ sides: 1 }), /sides: must be at least 2, not 1/);
});
