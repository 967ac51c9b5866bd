import t from 'tap';
import { checkParams } from '../../../src/engine/directory/check-params.js';
import { extensions, ScriptedModel } from '../../harness.js';

type Agents = Parameters<typeof checkParams>[0];

function problems(models: readonly string[], model: string | readonly string[], params: object): readonly string[] {
  const registered = extensions(Object.fromEntries(models.map((name) => [name, new ScriptedModel([])])));
  const agents = { assistant: { model, params } } as unknown as Agents;
  return checkParams(agents, registered).map(({ path, message }) => `${path.join('.')}: ${message}`);
}

t.test('a parameter that no model of an agent supports is a mistake', async (t) => {
  const rest = 'this parameter; remove it, or set it in the options of the model';
  t.same(problems(['a'], 'a', { temperature: 0.5, top_k: 5 }), [
    `agents.assistant.params.top_k: has no effect: "a" does not support ${rest}`,
  ]);
  t.same(problems(['a', 'b'], ['a', 'b'], { x: 1 }), [
    `agents.assistant.params.x: has no effect: neither "a" nor "b" supports ${rest}`,
  ]);
  t.same(problems(['a', 'b', 'c'], ['a', 'b', 'c'], { x: 1 }), [
    `agents.assistant.params.x: has no effect: none of "a", "b", "c" supports ${rest}`,
  ]);
  t.same(problems(['a'], ['a', 'disabled'], { x: 1 }), [], 'a disabled model may take it');
});
