import type { Message } from '@plugboard/kernel';
import type { ToolCallPart, TurnRecord } from '@plugboard/kernel/contracts';
import t from 'tap';
import { itemsOf } from '../src/items/turn-to-items.js';
import { DIGEST, VIEW } from './support/conversation.js';

const call = (id: string, name: string): ToolCallPart => ({
  id,
  type: 'function',
  function: { name, arguments: `{"of":"${id}"}` },
});
const calling = (...calls: ToolCallPart[]): Message => ({ role: 'assistant', content: null, tool_calls: calls });
const result = (id: string, content = `result of ${id}`): Message => ({ role: 'tool', tool_call_id: id, content });
const items = (messages: readonly Message[], view: Partial<typeof VIEW> = {}) =>
  itemsOf({ turn: 3, messages }, { ...VIEW, ...view });
const types = (messages: readonly Message[], view: Partial<typeof VIEW> = {}) => items(messages, view).map(({ type }) => type);

t.test('text becomes a message with the part type of its role', async (t) => {
  t.strictSame(
    items([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi.' },
    ]),
    [
      {
        id: `msg_${DIGEST}_3_0`,
        type: 'message',
        role: 'user',
        status: 'completed',
        content: [{ type: 'input_text', text: 'Hello' }],
      },
      {
        id: `msg_${DIGEST}_3_1`,
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Hi.', annotations: [] }],
      },
    ],
  );
});

t.test('each kind of part has its own form', async (t) => {
  const [said] = items([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'See' },
        { type: 'image_url', image_url: { url: 'https://images.example/1.png' } },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
        { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
        { type: 'video_url', video_url: { url: 'https://images.example/1.mp4' } },
      ],
    },
  ]);
  t.match(said, {
    content: [
      { type: 'input_text', text: 'See' },
      { type: 'input_image', image_url: 'https://images.example/1.png', detail: 'auto', file_id: null },
      { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low', file_id: null },
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' },
      { type: 'input_file', file_url: 'https://images.example/1.mp4' },
    ],
  });
});

t.test('a refusal becomes a part of the assistant message', async (t) => {
  const [inside, beside] = items([
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'Well,' },
        { type: 'refusal', refusal: 'no.' },
      ],
    },
    { role: 'assistant', content: null, refusal: 'Never.' },
  ]);
  t.match(inside, {
    content: [
      { type: 'output_text', text: 'Well,' },
      { type: 'refusal', refusal: 'no.' },
    ],
  });
  t.strictSame(beside?.type === 'message' && beside.content, [{ type: 'refusal', refusal: 'Never.' }]);
});

t.test('an empty assistant message is shown unless it has tool calls', async (t) => {
  t.match(items([{ role: 'assistant', content: '' }]), [{ type: 'message', content: [{ type: 'output_text', text: '' }] }]);
  t.match(items([{ role: 'assistant', content: null, audio: { id: 'audio_1' } }]), [{ type: 'message', content: [] }]);
  t.strictSame(types([{ role: 'assistant', content: '', tool_calls: [call('a', 'weather')] }]), ['function_call']);
  t.strictSame(types([{ role: 'assistant', content: 'Wait.', tool_calls: [call('a', 'weather')] }]), [
    'message',
    'function_call',
  ]);
});

t.test('system messages are not shown as items', async (t) => {
  t.strictSame(types([{ role: 'system', content: 'Be brief.' }]), []);
});

t.test('a server tool call is one item with its result', async (t) => {
  t.strictSame(
    items([
      { role: 'user', content: 'Read' },
      calling(call('a', 'files__read'), call('b', 'files__read')),
      result('a'),
      result('b'),
      { role: 'assistant', content: 'Done.' },
    ]).filter(({ type }) => type !== 'message'),
    ['a', 'b'].map((id, index) => ({
      id: `mcp_${DIGEST}_3_1_${index}`,
      type: 'mcp_call',
      server_label: 'files',
      name: 'read',
      arguments: `{"of":"${id}"}`,
      output: `result of ${id}`,
      error: null,
      status: 'completed',
      approval_request_id: null,
    })),
  );
});

t.test('results of reused call ids are assigned to the right call', async (t) => {
  const outputs = items([
    calling(call('a', 'files__read')),
    result('a', 'one'),
    calling(call('a', 'files__read')),
    result('a', 'two'),
  ]);
  t.match(outputs, [{ output: 'one' }, { output: 'two' }]);
  t.equal(outputs.length, 2);
});

t.test('a client tool call and its output are two items, possibly of two turns', async (t) => {
  t.strictSame(items([calling(call('a', 'files__read'), call('b', 'weather')), result('a')]), [
    {
      id: `mcp_${DIGEST}_3_0_0`,
      type: 'mcp_call',
      server_label: 'files',
      name: 'read',
      arguments: '{"of":"a"}',
      output: 'result of a',
      error: null,
      status: 'completed',
      approval_request_id: null,
    },
    {
      id: `fc_${DIGEST}_3_0_1`,
      type: 'function_call',
      status: 'completed',
      call_id: 'b',
      name: 'weather',
      arguments: '{"of":"b"}',
    },
  ]);
  t.strictSame(items([result('b', 'Rain'), { role: 'user', content: 'And?' }])[0], {
    id: `fco_${DIGEST}_3_0`,
    type: 'function_call_output',
    status: 'completed',
    call_id: 'b',
    output: 'Rain',
  });
});

t.test('a server tool call without a result is in progress', async (t) => {
  t.match(items([calling(call('a', 'files__read'))]), [{ type: 'mcp_call', output: null, status: 'incomplete' }]);
});

t.test('custom calls keep their own form', async (t) => {
  t.strictSame(items([calling({ id: 'c', type: 'custom', custom: { name: 'sql', input: 'select 1' } }), result('c', '1')]), [
    { id: `ctc_${DIGEST}_3_0_0`, type: 'custom_tool_call', call_id: 'c', name: 'sql', input: 'select 1' },
    { id: `ctco_${DIGEST}_3_1`, type: 'custom_tool_call_output', call_id: 'c', output: '1' },
  ]);
});

t.test('function calls without ids are paired by name', async (t) => {
  t.match(
    items([
      { role: 'assistant', content: null, function_call: { name: 'weather', arguments: '{}' } },
      { role: 'function', name: 'weather', content: null },
    ]),
    [
      { id: `fc_${DIGEST}_3_0_0`, type: 'function_call', call_id: 'weather', arguments: '{}' },
      { id: `fco_${DIGEST}_3_1`, type: 'function_call_output', call_id: 'weather', output: '' },
    ],
  );
});

const IMAGES: readonly Message[] = [
  calling(call('a', 'files__read')),
  result('a', ''),
  {
    role: 'user',
    content: [
      { type: 'text', text: 'Images from the tool results above:' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
    ],
  },
  { role: 'assistant', content: 'A cat.' },
];

t.test('images of tools are not shown as user messages', async (t) => {
  t.match(items(IMAGES)[1], { type: 'message', role: 'tool', content: [{ type: 'input_text' }, { type: 'input_image' }] });
});

t.test('`names` hides arguments and outputs of server tools, `none` hides the calls too', async (t) => {
  const names = items(IMAGES, { toolVisibility: 'names' });
  t.strictSame(
    names.map(({ type }) => type),
    ['mcp_call', 'message'],
  );
  t.match(names[0], { server_label: 'files', name: 'read', arguments: '', output: null, error: null, status: 'completed' });
  t.strictSame(types(IMAGES, { toolVisibility: 'none' }), ['message']);
  for (const toolVisibility of ['names', 'none'] as const) {
    const later = [calling(call('b', 'weather')), { role: 'user', content: 'And?' } as const];
    t.match(items(later, { toolVisibility })[0], { type: 'function_call', arguments: '{"of":"b"}' }, 'a caller sees its own');
  }
});

t.test('hidden calls stay hidden when the tool is removed from the configuration', async (t) => {
  const gone = { toolOf: () => undefined };
  t.strictSame(types(IMAGES, { ...gone, toolVisibility: 'none' }), ['message']);
  const [shown, ...others] = items(IMAGES, { ...gone, toolVisibility: 'names' });
  t.match(shown, { type: 'mcp_call', server_label: '', name: 'files__read', arguments: '', output: null });
  t.equal(others.length, 1);
  t.strictSame(types(IMAGES, gone), ['function_call', 'function_call_output', 'message', 'message']);
});

const TOOL = { entry: 'files', name: 'read' };
const record = (more: Partial<TurnRecord>): TurnRecord => ({
  startedAt: 0,
  queued: 0,
  duration: 1,
  reason: 'stop',
  steps: [],
  calls: [],
  ...more,
});
const callRecord = (id: string, state: TurnRecord['calls'][number]['state'], more: object = {}) => ({
  id,
  name: 'files__read',
  tool: TOOL,
  step: 1,
  start: 0,
  state,
  ...more,
});

t.test('a call that failed is failed, with its error as in the response', async (t) => {
  const messages = [calling(call('a', 'files__read')), result('a', 'no such file')];
  const recorded = record({ calls: [callRecord('a', 'failed', { duration: 3 })] });
  const failed = { type: 'mcp_call', status: 'failed', output: null, arguments: '{"of":"a"}' };
  t.match(itemsOf({ turn: 3, messages, record: recorded }, VIEW), [
    { ...failed, error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: 'no such file' }] } },
  ]);
  t.match(itemsOf({ turn: 3, messages, record: recorded }, { ...VIEW, toolVisibility: 'names' }), [
    { ...failed, arguments: '', error: { content: [{ text: 'The tool call failed.' }] } },
  ]);
  t.strictSame(itemsOf({ turn: 3, messages, record: recorded }, { ...VIEW, toolVisibility: 'none' }), []);
});

t.test('a call keeps its tool when the tool is gone', async (t) => {
  const messages = [calling(call('a', 'files__read')), result('a')];
  const recorded = record({ calls: [callRecord('a', 'completed')] });
  t.match(itemsOf({ turn: 3, messages, record: recorded }, { ...VIEW, toolOf: () => undefined }), [
    { type: 'mcp_call', server_label: 'files', name: 'read', output: 'result of a' },
  ]);
});

t.test('reasoning is shown before the message of its step, if everything may be shown', async (t) => {
  const messages: Message[] = [
    { role: 'user', content: 'Read' },
    { role: 'assistant', content: 'of the caller' },
    calling(call('a', 'files__read')),
    result('a'),
    { role: 'assistant', content: 'Done.' },
  ];
  const step = { connection: 'fast', start: 0, duration: 1 };
  const recorded = record({
    steps: [
      { ...step, reasoning: 'I must read.' },
      { ...step, reasoning: 'I have read.' },
    ],
  });
  const shown = itemsOf({ turn: 3, messages, record: recorded }, VIEW);
  t.strictSame(
    shown.map(({ type }) => type),
    ['message', 'message', 'reasoning', 'mcp_call', 'reasoning', 'message'],
  );
  t.strictSame(shown[2], {
    id: `rs_${DIGEST}_3_2`,
    type: 'reasoning',
    status: 'completed',
    summary: [{ type: 'summary_text', text: 'I must read.' }],
  });
  for (const toolVisibility of ['names', 'none'] as const)
    t.notMatch(JSON.stringify(itemsOf({ turn: 3, messages, record: recorded }, { ...VIEW, toolVisibility })), /reasoning|must/);
});

t.test('AP-2 a call that waits for approval is a request, also where its tools are hidden', async (t) => {
  const messages = [calling(call('a', 'files__read'), call('b', 'files__read')), result('b')];
  const calls = [callRecord('a', 'waiting', { approval: 'mcpr_a' }), callRecord('b', 'completed')];
  const shown = (toolVisibility: (typeof VIEW)['toolVisibility']) =>
    itemsOf({ turn: 3, messages, record: record({ calls }) }, { ...VIEW, toolVisibility })[0];
  const request = { id: 'mcpr_a', type: 'mcp_approval_request', server_label: 'files', name: 'read', arguments: '{"of":"a"}' };
  t.strictSame(shown('full'), request);
  t.strictSame(shown('names'), { ...request, arguments: '' });
  t.strictSame(shown('none'), { ...request, server_label: '', name: '', arguments: '' });
  const inside = { approval: 'mcpr_a', tool: { entry: 'helper › shell', name: 'append' }, arguments: '{"line":"x"}' };
  const [other] = itemsOf({ turn: 3, messages, record: record({ calls: [callRecord('a', 'waiting', inside)] }) }, VIEW);
  t.match(
    other,
    { server_label: 'helper › shell', name: 'append', arguments: '{"line":"x"}' },
    'what the person was asked about',
  );
});

t.test('AP-2 decisions are items, and an approved call follows its decision with its result', async (t) => {
  const messages: Message[] = [
    result('a', 'contents'),
    result('b', 'A person denied the call. It did not run. The reason: no'),
    result('c', 'The call was denied and did not run: nobody approved it in time.'),
    { role: 'assistant', content: 'Done.' },
  ];
  const approved = callRecord('a', 'completed', { approval: 'mcpr_a', arguments: '{"path":"a"}', step: 0 });
  const decisions = [
    { approval: 'mcpr_a', call: 'a', approve: true, by: 'person' },
    { approval: 'mcpr_b', call: 'b', approve: false, reason: 'no', by: 'person' },
    { approval: 'mcpr_c', call: 'c', approve: false, by: 'expired' },
  ] as const;
  const turn = { turn: 4, messages, record: record({ calls: [approved], decisions }) };
  const decided = (index: number, request: string, approve: boolean, reason: string | null) => ({
    id: `mcpar_${DIGEST}_4_${index}`,
    type: 'mcp_approval_response',
    approval_request_id: request,
    approve,
    reason,
  });
  t.strictSame(itemsOf(turn, VIEW).slice(0, 4), [
    decided(0, 'mcpr_a', true, null),
    {
      id: `mcp_${DIGEST}_4_0`,
      type: 'mcp_call',
      server_label: 'files',
      name: 'read',
      arguments: '{"path":"a"}',
      output: 'contents',
      error: null,
      status: 'completed',
      approval_request_id: 'mcpr_a',
    },
    decided(1, 'mcpr_b', false, 'no'),
    decided(2, 'mcpr_c', false, 'The call was denied and did not run: nobody approved it in time.'),
  ]);
  t.notMatch(JSON.stringify(itemsOf(turn, { ...VIEW, toolVisibility: 'names' })), /contents|path/);
  t.strictSame(
    itemsOf(turn, { ...VIEW, toolVisibility: 'none' }).map(({ type }) => type),
    ['mcp_approval_response', 'mcp_approval_response', 'mcp_approval_response', 'message'],
  );
});

t.test('TC-2 TC-4 a call of unknown effect has failed, and one of an interrupted turn is where it was settled', async (t) => {
  const unknown = 'Whether the call took effect is unknown.';
  const messages: Message[] = [result('a', unknown), { role: 'assistant', content: 'I do not know.' }];
  const calls = [callRecord('a', 'unknown', { arguments: '{"path":"a"}', step: 0 })];
  const turn = { turn: 4, messages, record: record({ calls }) };
  const item = {
    id: `mcp_${DIGEST}_4_0`,
    type: 'mcp_call',
    server_label: 'files',
    name: 'read',
    arguments: '{"path":"a"}',
    output: null,
    error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: unknown }] },
    status: 'failed',
    approval_request_id: null,
  };
  t.strictSame(itemsOf(turn, VIEW)[0], item);
  t.strictSame(
    itemsOf(turn, { ...VIEW, toolVisibility: 'none' }).map(({ type }) => type),
    ['message'],
  );
});
