import assert from 'node:assert/strict';
import type { Tool, ToolOutput, ToolSource } from '@plugboard/kernel';
import { compileSchema } from '@plugboard/kernel/contracts';
import { testToolCall } from '../context/tool-call.js';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { deepFreeze } from '../contract/deep-freeze.js';
import { waitFor } from '../contract/wait.js';

/** Milliseconds after its signal was aborted at which the runtime abandons a call (`Tool` 1). */
const ABANDONED_AFTER = 5_000;

/** A call that should succeed. @experimental */
export interface SampleCall {
  /** The tool's own name. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What the suite of tool sources needs. @experimental */
export interface ToolSourceContractOptions {
  /** Returns a source that is ready for use. Called once per case; the caller closes it. */
  readonly open: () => Promise<ToolSource> | ToolSource;
  /** One call of each tool that can be called without harm. */
  readonly calls: readonly [SampleCall, ...SampleCall[]];
  /** Milliseconds that one answer may take. By default 10,000. */
  readonly timeLimit?: number;
}

/**
 * Declares the tests of a source of tools (`ToolSource`, `Tool`).
 *
 * ```ts
 * toolSourceContract(t.test, { open: () => new DiceTool({ sides: 6 }), calls: [{ tool: 'roll', input: {} }] });
 * ```
 *
 * @experimental
 */
export function toolSourceContract(test: DeclareTest, { open, calls, timeLimit }: ToolSourceContractOptions): void {
  const contract = new Contract('A tool source', test);
  const toolsOf = async (source: ToolSource) =>
    waitFor('the list of tools', Promise.resolve(source.tools(new AbortController().signal)), timeLimit);
  const toolNamed = async (name: string) => {
    const tools = await toolsOf(await open());
    const tool = tools.find((tool) => tool.name === name);
    assert.ok(tool, `there is no tool "${name}"; there are ${tools.map((tool) => `"${tool.name}"`).join(', ')}`);
    return tool;
  };

  contract.add('gives every tool a different name', 'Tool.name', async () => {
    const names = (await toolsOf(await open())).map((tool) => tool.name);
    for (const name of names) assert.match(name, /\S/, 'a tool has no name');
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    assert.ok(twice === undefined, `two tools are named "${twice}"`);
  });
  contract.add('offers exactly one tool if it is `single`', 'ToolSource.single', async () => {
    const source = await open();
    const { length } = await toolsOf(source);
    assert.ok(!source.single || length === 1, `it is single and offers ${length} tools`);
  });
  contract.add('describes each tool for the model', 'Tool.description', async () => {
    for (const tool of await toolsOf(await open())) {
      assert.match(tool.description, /\S/, `the tool "${tool.name}" has no description`);
    }
  });
  contract.add('declares the effect of a second call', 'Tool.effect', async () => {
    for (const { name, effect } of await toolsOf(await open())) {
      const known = effect === undefined || ['read', 'idempotent', 'write'].includes(effect);
      assert.ok(known, `the tool "${name}" has the unknown effect "${effect}"`);
    }
  });
  contract.add('declares the arguments of each tool with a valid JSON Schema of type `object`', 'Tool.inputSchema', async () => {
    for (const tool of await toolsOf(await open())) {
      assert.equal(tool.inputSchema.type, 'object', `the schema of "${tool.name}" has the type "${tool.inputSchema.type}"`);
      compileSchema(tool.inputSchema);
    }
  });
  contract.add('returns the same tools in the same order each time', 'ToolSource 4', async () => {
    const source = await open();
    const declared = async () =>
      JSON.stringify((await toolsOf(source)).map(({ name, description, inputSchema }) => [name, description, inputSchema]));
    const first = await declared();
    const second = await declared();
    assert.ok(first === second, `first ${first}, then ${second}`);
  });

  for (const { tool, input } of calls) {
    const call = `${tool}(${JSON.stringify(input)})`;
    contract.add(`answers ${call} with text or parts`, 'ToolOutput', async () => {
      const found = await toolNamed(tool);
      const [mistake] = compileSchema(found.inputSchema)(input);
      assert.ok(mistake === undefined, `the sample does not match the tool's inputSchema: ${mistake?.message}`);
      assertOutput(await waitFor(`the answer to ${call}`, run(found, input), timeLimit), tool);
    });
    contract.add(`leaves the arguments of ${call} unchanged`, 'Tool 4', async () => {
      await waitFor(`the answer to ${call}`, run(await toolNamed(tool), deepFreeze(structuredClone(input))), timeLimit);
    });
    contract.add(`answers two concurrent calls of ${call}`, 'Tool 2', async () => {
      const found = await toolNamed(tool);
      const both = Promise.all([run(found, input), run(found, input)]);
      for (const output of await waitFor(`two answers to ${call}`, both, timeLimit)) assertOutput(output, tool);
    });
    contract.add(`ends ${call} soon after the signal is aborted`, 'Tool 1', async () => {
      const found = await toolNamed(tool);
      const abort = new AbortController();
      const ended = run(found, input, abort.signal).catch(() => undefined);
      abort.abort(new Error('the turn has ended'));
      const limit = Math.min(timeLimit ?? ABANDONED_AFTER, ABANDONED_AFTER);
      await waitFor(`the end of ${call} after its signal was aborted`, ended, limit);
    });
  }
}

/** Calls the tool with a copy of the arguments. Async, so that a tool that throws rejects. */
async function run(tool: Tool, input: SampleCall['input'], signal?: AbortSignal): Promise<ToolOutput> {
  const own = Object.isFrozen(input) ? input : structuredClone(input);
  return tool.run(own, testToolCall(signal ? { signal } : {}));
}

function assertOutput(output: ToolOutput, tool: string): void {
  if (typeof output === 'string') return;
  assert.ok(Array.isArray(output?.content), `the tool "${tool}" answered with neither text nor parts`);
  assert.ok(output.isError !== true, `the tool "${tool}" reports a failure: ${JSON.stringify(output.content)}`);
  for (const { type } of output.content) {
    assert.ok(['text', 'image', 'other'].includes(type), `the tool "${tool}" answered with a part of the unknown type "${type}"`);
  }
}
