import type { Target } from '@plugboard/kernel/contracts';
import { HttpError } from '@plugboard/transport-http';
import t from 'tap';
import { parseRequest } from '../src/index.js';
import { clientToolsOf } from '../src/request/client-tools.js';
import type { InputItem } from '../src/request/request.js';

const TARGET = { clientTools: 'passthrough', forwardsParam: () => true } as unknown as Target;

function read(fields: object, target: Partial<Target> = {}) {
  const request = parseRequest({ input: 'x', ...fields });
  const items = Array.isArray(request.input) ? (request.input as readonly InputItem[]) : [];
  return clientToolsOf(request, items, [], { ...TARGET, ...target });
}

function refusal(work: () => unknown): { param: unknown; code: unknown; message: string } {
  try {
    work();
  } catch (error) {
    if (error instanceof HttpError) return (error.body as { error: { param: unknown; code: unknown; message: string } }).error;
    throw error;
  }
  throw new Error('accepted');
}

const f = (name: string, more: object = {}) => ({ type: 'function', name, ...more });
const namespace = (name: string, ...tools: object[]) => ({ type: 'namespace', name, description: `About ${name}.`, tools });

t.test('CL-1 functions of a namespace are declared by both names', async (t) => {
  const parameters = { type: 'object', properties: { id: { type: 'string' } } };
  const { declarations, forms } = read({
    tools: [f('read'), namespace('agents', f('read', { description: 'Reads.', parameters, strict: true }), f('stop'))],
  });
  t.same(declarations, [
    { name: 'read', description: '', inputSchema: { type: 'object', properties: {} } },
    { name: 'agents__read', description: 'About agents.\n\nReads.', inputSchema: parameters, strict: true },
    { name: 'agents__stop', description: '', inputSchema: { type: 'object', properties: {} } },
  ]);
  t.same(forms.get('agents__stop'), { type: 'function', name: 'stop', namespace: 'agents' });
  const long = 'n'.repeat(60);
  const names = read({ tools: [namespace(long, f('one_function'), f('one_functiom'))] }).declarations.map(({ name }) => name);
  t.ok(names.every((name) => /^n{55}_[0-9a-f]{8}$/.test(name)));
  t.equal(new Set(names).size, 2);
});

t.test('CL-1 two tools with one name at the model are refused', async (t) => {
  t.match(
    refusal(() => read({ tools: [f('a__b'), namespace('a', f('b'))] })),
    { param: 'tools[1].tools[0].name', message: /'a__b'/ },
  );
  const more = { type: 'additional_tools', tools: [f('a')] };
  t.match(
    refusal(() => read({ tools: [f('a')], input: [more] })),
    { param: 'input[0].tools[0].name' },
  );
  const many = Array.from({ length: 5 }, (_, i) => namespace(`n${i}`, ...Array.from({ length: 120 }, (_, j) => f(`f${j}`))));
  t.match(
    refusal(() => read({ tools: many })),
    { message: /512 tools/ },
  );
  t.match(
    refusal(() => read({ tools: Array.from({ length: 600 }, (_, i) => f(`f${i}`)) })),
    { param: 'tools', code: 'array_above_max_length' },
  );
});

t.test('CL-2 tools that no one runs here are named, and cannot be forced', async (t) => {
  const hosted = ['web_search', 'image_generation', 'local_shell', 'tool_search', 'mcp', 'of_tomorrow'];
  const { declarations, ignored } = read({
    tools: [f('read'), ...hosted.map((type) => ({ type })), namespace('n', { type: 'x' })],
  });
  t.same(
    declarations.map(({ name }) => name),
    ['read'],
  );
  t.same(ignored, [...hosted.map((type, index) => `tools.${index + 1}.${type}`), 'tools.7.tools.0.x']);
  t.match(
    refusal(() => read({ tools: [f('read'), { type: 'web_search' }], tool_choice: { type: 'web_search' } })),
    { param: 'tool_choice.type' },
  );
  t.match(
    refusal(() => read({ tools: [{ type: 'web_search' }], tool_choice: 'required' })),
    { param: 'tool_choice', code: 'unsupported_value' },
  );
  t.match(
    refusal(() => read({ tools: [f('read')], tool_choice: { type: 'function', name: 'write' } })),
    { param: 'tool_choice', code: 'unsupported_value' },
  );
});

t.test('CL-3 a custom tool is a function of one text, and the model is told its grammar', async (t) => {
  const format = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' };
  const { declarations, forms } = read({ tools: [{ type: 'custom', name: 'apply_patch', description: 'Patches.', format }] });
  t.match(declarations, [
    {
      name: 'apply_patch',
      description: 'Patches.\n\nThe input must match this lark grammar:\nstart: "x"',
      inputSchema: { properties: { input: { type: 'string' } }, required: ['input'] },
    },
  ]);
  t.same(forms.get('apply_patch'), { type: 'custom', name: 'apply_patch', namespace: undefined });
});

t.test('CL-4 CL-9 items of the input add tools, also custom ones in a namespace', async (t) => {
  const tools = [namespace('n', { type: 'custom', name: 'c' }), { type: 'web_search' }];
  const { declarations, ignored, params } = read({
    tools: [f('read')],
    input: [
      { role: 'user', content: 'x' },
      { type: 'additional_tools', tools },
    ],
  });
  t.same(
    declarations.map(({ name }) => name),
    ['read', 'n__c'],
  );
  t.same(params, ['tools[0]', 'input[1].tools[0].tools[0]']);
  t.same(ignored, ['input.1.tools.1.web_search']);
  t.match(
    refusal(() => read({ input: [{ type: 'additional_tools' }] })),
    { param: 'input[0].tools', code: 'missing_required_parameter' },
  );
  t.match(
    refusal(() => read({ input: [{ type: 'additional_tools', tools: [f('a b')] }] })),
    { param: 'input[0].tools[0].name' },
  );
});

t.test('a tool choice names tools as the caller does', async (t) => {
  const tools = [f('read'), namespace('n', f('stop')), { type: 'custom', name: 'c' }];
  const stop = { type: 'function', name: 'stop', namespace: 'n' };
  t.same(read({ tools, tool_choice: stop }).choice, { type: 'function', function: { name: 'n__stop' } });
  t.same(read({ tools, tool_choice: { type: 'custom', name: 'c' } }).choice, { type: 'function', function: { name: 'c' } });
  const allowed = read({ tools, tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [stop, { type: 'web_search' }] } });
  t.same(
    [allowed.choice, allowed.declarations.map(({ name }) => name), allowed.params],
    ['auto', ['n__stop'], ['tools[1].tools[0]']],
  );
  t.same(read({ tools }, { clientTools: 'ignore' }).declarations, []);
});
