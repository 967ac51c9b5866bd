import { type Message, ModelError } from '@plugboard/kernel';
import t from 'tap';
import { answerWith, collect, type ModelStep, request, ScriptedModel, startRuntime } from '../../harness.js';

const image = (url: string) => ({ type: 'image_url' as const, image_url: { url } });
const refusal = (message: string, code?: ModelError['code']): readonly ModelStep[] => [
  new ModelError(message, { retryable: false, code, isRequestFault: true }),
];
const ALONE = { model: 'a' };
const NOTE = '[image omitted: the model did not accept it]';

/** An agent with a session, and what its models were asked. */
async function start(script: ConstructorParameters<typeof ScriptedModel>[0], agent: object = {}) {
  const model = new ScriptedModel(script);
  const other = new ScriptedModel(() => answerWith('other'));
  const app = await startRuntime({ agents: { assistant: { model: ['a', 'b'], ...agent } }, models: { a: model, b: other } });
  const say = async (
    content: (Message & { role: 'user' })['content'],
    session: { key: string } | undefined = { key: 'anna' },
  ) => {
    const events = await collect(app.runtime.run(request(app.target(), { messages: [{ role: 'user', content }], session })));
    return events.at(-1);
  };
  return { model, other, say };
}

const imagesOf = (model: ScriptedModel, index = -1) =>
  JSON.stringify(model.asked.at(index)?.messages).match(/https:[^"]*/g) ?? [];

t.test('an image of an earlier message that a provider refuses is left out (R-086)', async (t) => {
  const { model, other, say } = await start(({ messages }) =>
    JSON.stringify(messages).includes('gone') && messages.length > 1
      ? refusal('the provider answered 400: Unable to download the file. Please verify the URL and try again.')
      : answerWith('fine'),
  );
  await say([{ type: 'text', text: 'See' }, image('https://x.test/gone.png')]);
  t.match(await say('And?'), { type: 'finished' });
  t.equal(model.asked.length, 3);
  t.match(model.asked.at(-1)?.messages[0], { content: [{ text: 'See' }, { type: 'text', text: NOTE }] });
  t.match(await say([image('https://x.test/new.png')]), { type: 'finished' });
  t.equal(model.asked.length, 4, 'it is not sent again');
  t.same(imagesOf(model), ['https://x.test/new.png'], 'a new image is');
  t.equal(other.asked.length, 0);
});

t.test('what a provider attached to answers after an image that is left out is not sent (AI-8)', async (t) => {
  const { model, say } = await start(({ messages }) => {
    const isRefused = messages.length > 1 && JSON.stringify(messages).includes('gone');
    return isRefused
      ? refusal('Could not process image')
      : [
          { type: 'text', text: 'fine' },
          { type: 'end', reason: 'stop', extra: 'thoughts' },
        ];
  }, ALONE);
  await say([image('https://x.test/gone.png')]);
  t.match(await say('And?'), { type: 'finished' });
  const sent = model.asked.map(({ messages }) => JSON.stringify(messages));
  t.match(sent[1], /gone.*thoughts/);
  t.notMatch(sent[2], /gone|thoughts/);
  t.equal(sent.length, 3);
});

t.test('an image that one connection refused is still sent to another', async (t) => {
  let isDown = false;
  const { other, say } = await start(({ messages }) => {
    if (isDown) return [new ModelError('down.', { retryable: false })];
    return messages.length > 1 && JSON.stringify(messages).includes('https:') ? refusal('answered 413.') : answerWith('fine');
  });
  await say([image('https://x.test/large.png')]);
  t.match(await say('And?'), { type: 'finished' });
  isDown = true;
  await say('And now?');
  t.same(imagesOf(other), ['https://x.test/large.png']);
});

t.test('a new image that is refused fails its turn with the first refusal, and the next turn works', async (t) => {
  let refusals = 0;
  const { model, say } = await start(
    ({ messages }) => (JSON.stringify(messages).includes('bad') ? refusal(`bad image ${++refusals}.`) : answerWith('fine')),
    ALONE,
  );
  await say([image('https://x.test/good.png')]);
  t.match(await say([image('https://x.test/bad.png')]), { type: 'failed', failure: { message: /bad image 1/ } });
  t.equal(model.asked.length, 3, 'once more without the earlier image');
  t.match(await say('Sorry'), { type: 'finished' });
  t.same(imagesOf(model), ['https://x.test/good.png'], 'nothing was learned from a refusal that a remedy did not cure');
});

t.test('the oldest turns of a session are left out for a model that finds it too long (R-084, R-086)', async (t) => {
  let most = 100;
  const { model, say } = await start(
    ({ messages }) => (messages.length > most ? refusal('prompt is too long', 'context_length_exceeded') : answerWith('fine')),
    ALONE,
  );
  for (let i = 0; i < 8; i++) await say(`${i} ${'word '.repeat(100)}`);
  most = 9;
  t.match(await say('Half'), { type: 'finished' });
  t.same(
    model.asked.slice(-2).map(({ messages }) => messages.length),
    [17, 7],
  );
  most = 1;
  t.match(await say('Alone'), { type: 'finished' });
  t.same(
    model.asked.slice(-4).map(({ messages }) => messages.length),
    [19, 9, 3, 1],
  );
  most = 0;
  t.match(await say('Nothing fits'), { type: 'failed', failure: { code: 'context_length_exceeded' } });
});

t.test('nothing is left out without a session, or if the history of the agent is `error`', async (t) => {
  const tooLong = () => refusal('prompt is too long', 'context_length_exceeded');
  const strict = await start(({ messages }) => (messages.length > 1 ? tooLong() : answerWith('fine')), {
    ...ALONE,
    history: 'error',
  });
  await strict.say('1');
  t.match(await strict.say('2'), { type: 'failed', failure: { code: 'context_length_exceeded' } });
  const { model, say } = await start(tooLong, ALONE);
  t.match(await say('3', undefined), { type: 'failed' });
  t.equal(model.asked.length, 1);
});

t.test('a filtered request is not sent again', async (t) => {
  const { model, say } = await start(({ messages }) =>
    messages.length > 1 ? refusal('image refused', 'content_filter') : answerWith('fine'),
  );
  await say([image('https://x.test/a.png')]);
  t.match(await say('And?'), { type: 'finished' }, 'the other connection answers');
  t.equal(model.asked.length, 2);
});
