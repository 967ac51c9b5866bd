import type { Target } from '@plugboard/kernel/contracts';
import { ProtocolError } from '@plugboard/openai-protocol';
import t from 'tap';
import { clientToolsOf } from '../src/request/client-tools.js';
import { parseRequest } from '../src/request/validate.js';
import { agent, HI } from './support/route.js';

const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Tells the weather', parameters: { type: 'object' }, strict: true },
};

function tools(fields: object, target: Partial<Target> = {}) {
  return clientToolsOf(parseRequest({ model: 'a', messages: HI, ...fields }), { ...agent, ...target });
}

function fault(fields: object, target: Partial<Target> = {}) {
  try {
    tools(fields, target);
  } catch (error) {
    if (error instanceof ProtocolError) return { status: error.status, ...error.body.error };
    throw error;
  }
  throw new Error('nothing was refused');
}

const PASSTHROUGH = { clientTools: 'passthrough' } as const;

const FORCING = [
  'required',
  { type: 'function', function: { name: 'weather' } },
  { type: 'custom', custom: { name: 'weather' } },
  { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [weather] } },
];

t.test('C-059 an agent that ignores client tools accepts any number of them', async (t) => {
  const many = Array.from({ length: 30 }, (_, i) => ({ type: 'function', function: { name: `tool_${i}`, parameters: null } }));
  const custom = { type: 'custom', custom: { name: 'shell', format: { type: 'text' } } };
  for (const tool_choice of ['auto', 'none', { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } }]) {
    t.same(tools({ tools: [...many, custom], tool_choice, parallel_tool_calls: true }), []);
  }
  t.same(tools({ functions: [{ name: 'f' }], function_call: 'auto' }), []);
});

t.test('C-060 an agent that ignores client tools cannot be made to call one', async (t) => {
  for (const tool_choice of FORCING) {
    t.match(fault({ tools: [weather], tool_choice }), {
      status: 400,
      type: 'invalid_request_error',
      param: 'tool_choice',
      code: 'unsupported_value',
      message: /ignores those of a request/,
    });
  }
  t.match(fault({ functions: [{ name: 'f' }], function_call: { name: 'f' } }), { status: 400, param: 'function_call' });
});

t.test('client tools are passed on if the target allows it', async (t) => {
  t.same(tools({ tools: [weather, { type: 'function', function: { name: 'bare' } }] }, PASSTHROUGH), [
    { name: 'weather', description: 'Tells the weather', inputSchema: { type: 'object' }, strict: true },
    { name: 'bare', description: '', inputSchema: { type: 'object', properties: {} } },
  ]);
  for (const tool_choice of FORCING) t.equal(tools({ tools: [weather], tool_choice }, PASSTHROUGH).length, 1);
});

t.test('a forced call needs tools in the request and a connection that supports tool_choice', async (t) => {
  t.match(fault({ tool_choice: 'required' }, PASSTHROUGH), { param: 'tool_choice', message: /has no tools/ });
  const deaf = { ...PASSTHROUGH, forwardsParam: () => false };
  t.match(fault({ tools: [weather], tool_choice: 'required' }, deaf), { param: 'tool_choice' });
  t.equal(tools({ tools: [weather], tool_choice: 'auto' }, deaf).length, 1);
});

t.test('custom tools are refused', async (t) => {
  t.match(fault({ tools: [weather, { type: 'custom', custom: { name: 'shell' } }] }, PASSTHROUGH), {
    status: 400,
    param: 'tools[1].type',
    code: 'unsupported_value',
  });
});
