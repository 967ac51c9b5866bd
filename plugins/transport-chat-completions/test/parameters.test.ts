import type { Target } from '@plugboard/kernel/contracts';
import t from 'tap';
import { parametersOf } from '../src/request/parameters.js';
import { parseRequest } from '../src/request/validate.js';
import { agent, HI } from './support/route.js';

function sorted(
  fields: object,
  {
    target = {},
    passesTools = false,
    sources = ['session_id', 'header', 'user'] as const,
  }: {
    target?: Partial<Target>;
    passesTools?: boolean;
    sources?: readonly ('session_id' | 'header' | 'user')[];
  } = {},
) {
  return parametersOf(parseRequest({ model: 'a', messages: HI, ...fields }), { ...agent, ...target }, passesTools, sources);
}

t.test('C-061 sampling parameters are passed to the turn', async (t) => {
  const params = {
    max_completion_tokens: 100,
    temperature: 1,
    top_p: 0.9,
    stop: ['\n'],
    seed: 7,
    reasoning_effort: 'low',
    verbosity: 'high',
    response_format: { type: 'json_object' },
    frequency_penalty: 0.1,
    presence_penalty: 0.2,
    prompt_cache_key: 'k',
  };
  t.same(sorted(params), { params, ignored: [] });
  t.same(sorted({ max_tokens: 5 }), { params: { max_tokens: 5 }, ignored: [] });
});

t.test('max_completion_tokens wins over max_tokens, which is reported as ignored', async (t) => {
  t.same(sorted({ max_tokens: 5, max_completion_tokens: 7 }), { params: { max_completion_tokens: 7 }, ignored: ['max_tokens'] });
});

t.test('a parameter that the target does not support is reported and dropped', async (t) => {
  const target = { forwardsParam: (param: string) => param === 'top_p' };
  t.same(sorted({ temperature: 0.5, top_p: 0.9, seed: 7 }, { target }), {
    params: { top_p: 0.9 },
    ignored: ['temperature', 'seed'],
  });
});

t.test('a parameter equal to its default is not reported as ignored', async (t) => {
  const defaults = {
    temperature: 1,
    top_p: 1,
    frequency_penalty: 0,
    presence_penalty: 0,
    logprobs: false,
    reasoning_effort: 'medium',
    verbosity: 'medium',
    parallel_tool_calls: true,
    tool_choice: 'auto',
    service_tier: 'auto',
    store: false,
    response_format: { type: 'text' },
    tools: [],
    user: ' ',
    session_id: '',
    seed: null,
    unheard_of: null,
  };
  t.same(sorted(defaults, { target: { forwardsParam: () => false }, sources: [] }).ignored, []);
  t.same(sorted({ tool_choice: 'none' }).ignored, []);
});

t.test('ignored fields are reported in the order of the request', async (t) => {
  const fields = {
    zebra: 1,
    tools: [{ type: 'function', function: { name: 'f' } }],
    tool_choice: 'none',
    parallel_tool_calls: false,
    functions: [{ name: 'f' }],
    logprobs: true,
    top_logprobs: 3,
    store: true,
    service_tier: 'flex',
    safety_identifier: 'u',
    web_search_options: {},
    prompt_cache_retention: '24h',
    moderation: { model: 'm' },
    audio: {},
    'reasoning.effort': 'low',
  };
  t.same(sorted(fields), { params: {}, ignored: Object.keys(fields) });
});

t.test('fields with an effect are not reported as ignored', async (t) => {
  const fields = { user: 'u', session_id: 's', metadata: { k: 'v' }, n: 1, modalities: ['text'] };
  const streamed = { stream: true, stream_options: { include_usage: true, include_obfuscation: true } };
  t.same(sorted({ ...fields, ...streamed }), { params: {}, ignored: [] });
});

t.test('C-136 fields not listed in sessionFrom are reported as ignored', async (t) => {
  const fields = { user: 'u', session_id: 's' };
  t.same(sorted(fields, { sources: ['header'] }).ignored, ['user', 'session_id']);
  t.same(sorted(fields, { sources: ['user'] }).ignored, ['session_id']);
});

t.test('parameters of a single model call go to raw models only', async (t) => {
  const params = { logit_bias: { 1: 5 }, prediction: { type: 'content', content: 'x' }, prompt_cache_options: { ttl: '30m' } };
  t.same(sorted(params), { params: {}, ignored: Object.keys(params) });
  t.same(sorted(params, { target: { kind: 'model' } }), { params, ignored: [] });
});

t.test('parameters of client tools are dropped together with the tools', async (t) => {
  const params = { tool_choice: 'required', parallel_tool_calls: false };
  const tools = [{ type: 'function', function: { name: 'f' } }];
  t.same(sorted({ tools, ...params }, { passesTools: true }), { params, ignored: [] });
});

t.test('a name unsafe in a header becomes a question mark, and at most 32 are reported', async (t) => {
  t.same(sorted({ 'a b': 1, ä: 1, 'x\r\ny': 1, ok: 1, ['x'.repeat(65)]: 1 }).ignored, ['?', '?', '?', 'ok', '?']);
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}`, 1]));
  t.same(sorted(many).ignored, Object.keys(many).slice(0, 32));
});
