import t from 'tap';
import { refusalOf, turnOf } from './support/route.js';

const tool = (name: string, more: object = {}) => ({ name, input_schema: { type: 'object', properties: {} }, ...more });

t.test('CL-22 tools of the client are declared to the model', async (t) => {
  const { turn, ignored } = await turnOf({
    tools: [
      tool('read', { description: 'Reads.', strict: true, cache_control: { type: 'ephemeral' }, defer_loading: true }),
      tool('write', { type: 'custom', input_examples: [{}] }),
    ],
  });
  t.strictSame(turn.clientTools, [
    { name: 'read', description: 'Reads.', inputSchema: { type: 'object', properties: {} }, strict: true },
    { name: 'write', description: '', inputSchema: { type: 'object', properties: {} } },
  ]);
  t.equal(ignored, 'tools.1.input_examples');
});

t.test('CL-22 tools of the protocol that the client runs are declared, those of its servers named', async (t) => {
  const { turn, ignored } = await turnOf({
    tools: [
      { type: 'bash_20250124', name: 'bash' },
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 9 },
      { type: 'web_search_20250305', name: 'web_search', max_uses: 3 },
      { type: 'memory_20250818', name: 'memory' },
      { type: 'computer_20250124', name: 'computer', display_width_px: 1, display_height_px: 1 },
      { type: 'telepathy_20300101', name: 'telepathy' },
    ],
  });
  t.strictSame(
    turn.clientTools.map(({ name }) => name),
    ['bash', 'str_replace_based_edit_tool', 'memory', 'computer'],
  );
  for (const { inputSchema } of turn.clientTools) t.match(inputSchema, { type: 'object', properties: {} });
  t.equal(ignored, 'tools.2.web_search_20250305, tools.5.telepathy_20300101');
});

t.test('CL-22 messages of the role `system` add and remove tools', async (t) => {
  const change = (type: string, tool: object) => ({ type, tool });
  const named = (name: string) => ({ type: 'tool_reference', name });
  const defined = (name: string) => ({ type: 'tool_definition', definition: tool(name, { description: 'Late.' }) });
  const said = (...content: object[]) => ({ role: 'system', content });
  const hi = { role: 'user', content: 'Hi' };
  const { turn, ignored } = await turnOf({
    tools: [tool('read'), tool('write'), tool('find')],
    messages: [
      hi,
      said(
        { type: 'text', text: 'New tools.' },
        change('tool_addition', defined('late')),
        change('tool_removal', named('write')),
      ),
      { role: 'assistant', content: 'Yes?' },
      hi,
      said(change('tool_removal', named('late')), change('tool_removal', named('read')), { type: 'tool_dream' }),
      said(change('tool_addition', named('late')), change('tool_addition', named('nobody'))),
    ],
  });
  t.strictSame(
    turn.clientTools.map(({ name, description }) => [name, description]),
    [
      ['find', ''],
      ['late', 'Late.'],
    ],
  );
  t.match(turn.messages, [{}, { role: 'system', content: 'New tools.' }, {}, {}]);
  t.equal(turn.messages.length, 4);
  t.equal(ignored, 'messages.4.content.2.tool_dream');
  const messages = [hi, said(change('tool_addition', { type: 'tool_definition', definition: { name: 'x' } }))];
  t.match(await refusalOf({ messages }), {
    status: 400,
    message: 'messages.1.content.0.tool.definition.input_schema: Field required',
  });
  t.match(await refusalOf({ messages: [hi, said({ type: 'tool_removal' })] }), { message: /^messages\.1\.content\.0\.tool: / });
});

t.test('CL-22 `tool_choice` is sent in the words of model connections', async (t) => {
  const paramsOf = async (tool_choice: object) => (await turnOf({ tools: [tool('read')], tool_choice })).turn.params;
  t.match(await paramsOf({ type: 'auto' }), { tool_choice: 'auto', parallel_tool_calls: undefined });
  t.match(await paramsOf({ type: 'any', disable_parallel_tool_use: true }), {
    tool_choice: 'required',
    parallel_tool_calls: false,
  });
  t.match(await paramsOf({ type: 'none' }), { tool_choice: 'none' });
  t.match(await paramsOf({ type: 'tool', name: 'read' }), { tool_choice: { type: 'function', function: { name: 'read' } } });
  const { turn } = await turnOf({ tool_choice: { type: 'auto' } });
  t.notOk('tool_choice' in turn.params, 'without tools there is nothing to choose');
});

t.test('CL-22 a choice that cannot come true is refused', async (t) => {
  const problem = async (fields: object, options = {}) => (await refusalOf(fields, options)).message;
  t.match(await problem({ tool_choice: { type: 'any' } }), /^tool_choice: a call cannot be forced: the request has no tools/);
  t.match(
    await problem({
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'web_search' },
    }),
    /^tool_choice: a call cannot be forced/,
  );
  t.match(
    await problem({ tools: [tool('read')], tool_choice: { type: 'tool', name: 'write' } }),
    /^tool_choice\.name: Tool 'write' not found/,
  );
  const ignoring = { target: { clientTools: 'ignore' as const } };
  t.match(await problem({ tools: [tool('read')], tool_choice: { type: 'any' } }, ignoring), /this agent runs its own tools/);
  const { turn, ignored } = await turnOf({ tools: [tool('read')], tool_choice: { type: 'auto' } }, ignoring);
  t.strictSame(turn.clientTools, []);
  t.equal(ignored, 'tools');
});

t.test('CL-22 malformed tools, too many, and two of one name are refused', async (t) => {
  const problem = async (...tools: unknown[]) => (await refusalOf({ tools })).message;
  t.match(await problem(tool('read'), tool('read')), /^tools: Tool names must be unique, and 'read' is not/);
  t.match(await problem(tool('no spaces')), /^tools\.0\.name: String should match pattern/);
  t.match(await problem({ name: 'read' }), /^tools\.0\.input_schema: Field required/);
  t.match(await problem({ input_schema: {} }), /^tools\.0\.name: Field required/);
  t.match(await problem(...Array.from({ length: 1025 }, (_, i) => tool(`t${i}`))), /^tools: List should have at most 1024 items/);
  const { turn } = await turnOf({ tools: Array.from({ length: 200 }, (_, i) => tool(`t${i}`)) });
  t.equal(turn.clientTools.length, 200);
});

t.test('CL-22 `output_config.format` is structured output, and 400 where there is none', async (t) => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const format = { type: 'json_schema', schema };
  const { turn, ignored } = await turnOf({ output_config: { format, effort: 'high', task_budget: {} } });
  t.match(turn.params, { response_format: { type: 'json_schema', json_schema: { schema } }, reasoning_effort: 'high' });
  t.equal(ignored, 'output_config.task_budget');
  t.match((await turnOf({ output_format: format })).turn.params, { response_format: { type: 'json_schema' } });
  const target = { forwardsParam: (name: string) => name !== 'response_format' };
  t.match(await refusalOf({ output_config: { format } }, { target }), {
    status: 400,
    message: 'output_config.format: The model of this agent has no structured output',
  });
});

t.test('parameters are sent as the model connection names them, and named where it does not take them', async (t) => {
  const fields = { temperature: 0.5, top_p: 0.9, top_k: 5, stop_sequences: ['END'], service_tier: 'auto' };
  const { turn, ignored } = await turnOf(fields);
  t.strictSame(turn.params, { max_completion_tokens: 100, temperature: 0.5, top_p: 0.9, stop: ['END'] });
  t.equal(ignored, 'top_k');
  const { turn: bare, ignored: all } = await turnOf(fields, { target: { forwardsParam: () => false } });
  t.strictSame(bare.params, {});
  t.equal(all, 'max_tokens, temperature, top_p, stop_sequences, top_k');
});

t.test('CL-25 unknown fields are ignored and named, `thread` is refused', async (t) => {
  const { ignored } = await turnOf({
    context_management: { edits: [] },
    mcp_servers: [],
    container: null,
    'x\r\ny': 1,
    cache_control: { type: 'ephemeral' },
  });
  t.equal(ignored, 'context_management, mcp_servers, ?');
  t.match(await refusalOf({ thread: { type: 'create' } }), { status: 400, message: /^thread: / });
});

t.test('values out of range are refused', async (t) => {
  const problem = async (fields: object) => (await refusalOf(fields)).message;
  t.equal(await problem({ max_tokens: undefined }), 'max_tokens: Field required');
  t.equal(await problem({ max_tokens: 0 }), 'max_tokens: Input should be greater than or equal to 1');
  t.equal(await problem({ max_tokens: '9' }), 'max_tokens: Input should be a valid integer');
  t.equal(await problem({ temperature: 1.5 }), 'temperature: Input should be less than or equal to 1');
  t.equal(await problem({ stop_sequences: [1] }), 'stop_sequences.0: Input should be a valid string');
  t.equal(await problem({ stream: 'yes' }), 'stream: Input should be a valid boolean');
  t.equal(await problem({ model: undefined }), 'model: Field required');
  t.match(await problem({ model: 'x'.repeat(257) }), /^model: String should have 1 to 256 bytes/);
  t.match(await problem({ thinking: { type: 'much' } }), /^thinking\.type: Input should be 'enabled'/);
  t.match(await problem({ metadata: { user_id: 'x'.repeat(513) } }), /^metadata\.user_id: /);
});
