import { isToolImagesMessage, Transcript } from '@plugboard/kernel/contracts';
import t from 'tap';

t.test('the text of a step is assembled in order, escaped or not', async (t) => {
  const transcript = new Transcript();
  transcript.add([
    { type: 'step', step: 1, connection: 'm' },
    { type: 'text', text: 'a "\\' },
    { type: 'text', text: 'b\n', json: 'b\\n' },
    { type: 'text', text: 'c', json: 'c' },
  ]);
  transcript.add([
    { type: 'text', text: 'd' },
    { type: 'text', text: '"', json: '\\"' },
  ]);
  t.same(transcript.messages(), [{ role: 'assistant', content: 'a "\\b\ncd"' }]);
});

t.test('escaped text is decoded only when needed', async (t) => {
  const transcript = new Transcript();
  const text = {
    type: 'text',
    json: 'a',
    get text(): string {
      throw new Error('decoded');
    },
  } as const;
  transcript.add([{ type: 'step', step: 1, connection: 'm' }, text]);
  t.same(transcript.messages(), [{ role: 'assistant', content: 'a' }]);
});

t.test('images of tools are distinguished from user messages', async (t) => {
  const transcript = new Transcript();
  transcript.add([
    { type: 'step', step: 1, connection: 'm' },
    { type: 'tool-call', id: 'a', name: 'look', arguments: '{}', tool: undefined },
    { type: 'tool-result', id: 'a', content: '', images: ['data:image/png;base64,AA'], isError: false, milliseconds: 1 },
  ]);
  const messages = transcript.messages();
  t.strictSame(
    messages.map(({ role }) => role),
    ['assistant', 'tool', 'user'],
  );
  const shown = messages.map((_, index) => isToolImagesMessage(messages, index));
  t.strictSame(shown, [false, false, true]);
  t.notOk(isToolImagesMessage(messages.slice(2), 0), 'where no tool answered just before, a user said it');
  t.notOk(isToolImagesMessage([...messages.slice(0, 2), { role: 'user', content: 'Images from the tool results above:' }], 2));
  t.notOk(isToolImagesMessage([...messages.slice(0, 2), { role: 'user', content: [{ type: 'text', text: 'Look:' }] }], 2));
  t.notOk(isToolImagesMessage(messages, 3), 'nor in an empty list');
});

t.test('no image comes between a client tool call and its result', async (t) => {
  const transcript = new Transcript();
  transcript.add([
    { type: 'step', step: 1, connection: 'm' },
    { type: 'tool-call', id: 'own', name: 'look', arguments: '{}', tool: { entry: 'look', name: 'look' } },
    { type: 'tool-call', id: 'theirs', name: 'f', arguments: '{}', tool: undefined },
    { type: 'tool-result', id: 'own', content: 'seen', images: ['data:image/png;base64,AA'], isError: false, milliseconds: 1 },
  ]);
  const [, result, ...others] = transcript.messages();
  t.match(result, { role: 'tool', tool_call_id: 'own', content: /^seen\n\[1 images omitted: .*\]$/ });
  t.strictSame(others, []);
});

t.test('results and their images are in the order of the calls, in whatever order they came', async (t) => {
  const call = (id: string, more: object = {}) =>
    ({ type: 'tool-call', id, name: 'look', arguments: '{}', tool: { entry: 'look', name: 'look' }, ...more }) as const;
  const result = (id: string) =>
    ({ type: 'tool-result', id, content: id, images: [`data:${id}`], isError: false, milliseconds: 1 }) as const;
  const transcript = new Transcript();
  transcript.add([call('x', { approval: 'mcpr_x' }), call('y', { approval: 'mcpr_y' }), result('y'), result('x')]);
  transcript.add([{ type: 'step', step: 1, connection: 'm' }, call('a'), call('b'), call('c')]);
  transcript.add([result('c'), result('a')]);
  transcript.add([result('b')]);
  const messages = transcript.messages();
  t.strictSame(
    messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])),
    ['x', 'y', 'a', 'b', 'c'],
  );
  t.match(
    messages.filter(({ role }) => role === 'user').map(({ content }) => JSON.stringify(content)),
    [/data:x.*data:y/, /data:a.*data:b.*data:c/],
  );
});

t.test('the events so far come in fewer events, and can be asked for at any time', async (t) => {
  const transcript = new Transcript();
  const call = { type: 'tool-call', id: 'a', name: 'look', arguments: '{}', tool: undefined } as const;
  const result = { type: 'tool-result', id: 'a', content: 'seen', images: [], isError: false, milliseconds: 1 } as const;
  const steps = [1, 2].map((step) => ({ type: 'step', step, connection: 'm' }) as const);
  const [first, second] = steps as [(typeof steps)[0], (typeof steps)[0]];
  transcript.add([first, { type: 'text', text: 'I ' }, { type: 'text', text: 'l', json: 'l' }]);
  t.strictSame(transcript.events(), [first, { type: 'text', text: 'I l' }]);
  transcript.add([{ type: 'text', text: 'ook', json: 'ook' }, call]);
  t.strictSame(transcript.events().slice(1), [{ type: 'text', text: 'I l' }, { type: 'text', text: 'ook' }, call]);
  transcript.add([result]);
  t.match(transcript.messages(), [{ content: 'I look' }, { content: 'seen' }]);
  transcript.add([second, { type: 'text', text: 'No.', isRefusal: true }]);
  t.strictSame(transcript.events().slice(3), [call, result, second, { type: 'text', text: 'No.', isRefusal: true }]);
  t.match(transcript.messages(), [{ content: 'I look' }, { content: 'seen' }, { refusal: 'No.' }]);
});

t.test('text after the results of a step is a message of its own, as what follows them in the conversation', async (t) => {
  const call = { type: 'tool-call', id: 'a', name: 'look', arguments: '{}', tool: { entry: 'look', name: 'look' } } as const;
  const result = { type: 'tool-result', id: 'a', content: 'found', images: [], isError: false, milliseconds: 1 } as const;
  const expected = [
    { role: 'assistant', content: null, tool_calls: [{ id: 'a' }] },
    { role: 'tool', content: 'found' },
    { role: 'assistant', content: 'Enough.' },
  ];
  for (const isReadBetween of [false, true]) {
    const transcript = new Transcript();
    transcript.add([{ type: 'step', step: 1, connection: 'm' }, call, result]);
    if (isReadBetween) transcript.messages();
    transcript.add([{ type: 'text', text: 'Enough.' }]);
    t.match(transcript.messages(), expected);
    t.equal(transcript.messages().length, 3);
    t.same(
      transcript.events().map(({ type }) => type),
      ['step', 'tool-call', 'tool-result', 'text'],
    );
  }
});
