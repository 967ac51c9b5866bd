import assert from 'node:assert/strict';
import { Ajv } from 'ajv';
import type { Tool, ToolOutput, ToolSource } from '../contracts/tool-source.js';
import { type ContractCase, deepFreeze, soon } from './contract.js';
import { testToolCall } from './tool-call.js';

/** A call that should work, for a contract to make. */
export interface SampleCall {
  /** The tool's own name. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/**
 * What every source of tools must keep to (tool-source.ts).
 *
 * @param open gives a source that is ready to work. It is called once for each case; closing what it opened is the caller's.
 * @param calls one call of each tool, or of each that can be called without harm.
 */
export function toolSourceContract(
  open: () => Promise<ToolSource> | ToolSource,
  calls: readonly [SampleCall, ...SampleCall[]],
): readonly ContractCase[] {
  const cases: ContractCase[] = [
    {
      name: 'offers tools with names of their own, and exactly one where it is single by its nature',
      run: async () => {
        const source = await open();
        const names = (await toolsOf(source)).map((tool) => tool.name);
        assert.deepEqual(names, [...new Set(names)], 'two tools have the same name');
        for (const name of names) assert.match(name, /\S/, 'a tool has no name');
        if (source.single) assert.equal(names.length, 1, 'a single source offers exactly one tool');
      },
    },
    {
      name: 'tells the model what each tool does, and the kernel what calling it twice would do',
      run: async () => {
        for (const tool of await toolsOf(await open())) {
          assert.match(tool.description, /\S/, `${tool.name} has no description`);
          assert.ok(['read', 'idempotent', 'write'].includes(tool.effect), `${tool.name}: unknown effect "${tool.effect}"`);
        }
      },
    },
    {
      name: 'describes the arguments of each tool by a schema of an object that compiles',
      run: async () => {
        for (const tool of await toolsOf(await open())) {
          assert.equal(tool.inputSchema.type, 'object', `${tool.name}: the type of the schema is not "object"`);
          compile(tool);
        }
      },
    },
    {
      name: 'offers the same tools in the same order when it is asked again, so that the prompt of a model stays the same',
      run: async () => {
        const source = await open();
        const declared = async () =>
          (await toolsOf(source)).map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
        assert.equal(JSON.stringify(await declared()), JSON.stringify(await declared()));
      },
    },
  ];
  for (const { tool, input } of calls) {
    const called = `${tool}(${JSON.stringify(input)})`;
    cases.push(
      {
        name: `${called} answers with text or parts, and leaves its arguments as they are`,
        run: async () => {
          const found = await toolNamed(tool, await open());
          const validate = compile(found);
          assert.ok(validate(input), `the sample arguments do not fit the tool's schema: ${JSON.stringify(validate.errors)}`);
          const output = await soon(`the answer of ${called}`, run(found, input));
          assertOutput(output, tool);
        },
      },
      {
        name: `${called} may run twice at the same time`,
        run: async () => {
          const found = await toolNamed(tool, await open());
          const outputs = await soon(`two answers of ${called}`, Promise.all([run(found, input), run(found, input)]));
          for (const output of outputs) assertOutput(output, tool);
        },
      },
      {
        name: `${called} ends soon when its signal is aborted`,
        run: async () => {
          const found = await toolNamed(tool, await open());
          const abort = new AbortController();
          const ended = run(found, input, abort.signal).catch(() => undefined);
          abort.abort(new Error('the turn has ended'));
          await soon(`the end of ${called} after its signal was aborted`, ended);
        },
      },
    );
  }
  return cases;
}

async function toolsOf(source: ToolSource): Promise<readonly Tool[]> {
  return soon('the list of tools', Promise.resolve(source.tools(new AbortController().signal)));
}

async function toolNamed(name: string, source: ToolSource): Promise<Tool> {
  const tools = await toolsOf(source);
  const tool = tools.find((tool) => tool.name === name);
  assert.ok(tool, `there is no tool "${name}"; there are ${tools.map((tool) => `"${tool.name}"`).join(', ')}`);
  return tool;
}

/** Not strict: the schema may be a remote server's, which owes nothing to ajv's idea of good style. */
function compile(tool: Tool) {
  return new Ajv({ strict: false }).compile(tool.inputSchema);
}

/** The arguments are lent: a tool that writes into them throws. Async, so that it then rejects like any other. */
async function run(tool: Tool, input: SampleCall['input'], signal?: AbortSignal): Promise<ToolOutput> {
  return tool.run(deepFreeze(structuredClone(input)), testToolCall(signal ? { signal } : {}));
}

function assertOutput(output: ToolOutput, tool: string): void {
  if (typeof output === 'string') return;
  assert.ok(Array.isArray(output.content), `${tool} answered with neither text nor parts`);
  assert.notEqual(output.isError, true, `${tool} says that it failed: ${JSON.stringify(output.content)}`);
  for (const part of output.content) {
    assert.ok(['text', 'image', 'other'].includes(part.type), `${tool} answered with a part of the unknown type "${part.type}"`);
  }
}
