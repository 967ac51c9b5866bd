import t from 'tap';
import { Transcript } from '../../src/agent/transcript.js';

t.test('the text of a step is put together in order, whichever of it came as it is written in JSON', async (t) => {
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

t.test('a text is not decoded while nobody asks for it', async (t) => {
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
