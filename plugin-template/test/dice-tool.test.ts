import { ToolSources } from '@plugboard/kernel';
import { pluginContract, SequentialIds, testContext, testToolCall, toolSourceContract } from '@plugboard/kernel/testing';
import t from 'tap';
import plugin from '../src/index.js';

/** The plugin's tool source, as an entry with these options would have it, with dice that fall as told. */
function dice(config: object = {}, falls: readonly [number, ...number[]] = [0.5]) {
  return testContext(plugin, { config, ids: new SequentialIds(falls) }).contributed(ToolSources);
}

async function roll(source: ReturnType<typeof dice>, input: Record<string, unknown>) {
  const [tool] = await source.tools(new AbortController().signal);
  return tool?.run(input, testToolCall());
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('fulfils the tool source contract', async (t) => {
  toolSourceContract(t.test, { open: () => dice(), calls: [{ tool: 'dice', input: { dice: 2 } }] });
});

t.test('rolls as many dice as the model asks for, and adds them up', async (t) => {
  t.equal(await roll(dice({}, [0, 0.5, 0.999]), { dice: 3 }), '1 + 4 + 6 = 11');
});

t.test('rolls one die with as many sides as the settings say where the model names nothing', async (t) => {
  t.equal(await roll(dice({ sides: 20 }, [0.999]), {}), '20 = 20');
  t.equal(await roll(dice({ sides: 20 }, [0.999]), { sides: 2 }), '2 = 2');
});

t.test('refuses settings with a die that has one side', async (t) => {
  t.throws(() => dice({ sides: 1 }), { message: /sides: must be at least 2, not 1/ });
});
