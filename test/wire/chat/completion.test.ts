import t from 'tap';
import { isCompletion } from '../../../plugins/transport-chat-completions/test/support/reference-schema.js';
import { ASSISTANT, answerOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../../support/with-tools.js';

interface Completion {
  readonly id: string;
  readonly created: number;
  readonly system_fingerprint: string;
  readonly choices: readonly [{ readonly finish_reason: string; readonly message: object }];
  readonly usage: Readonly<Record<'prompt_tokens' | 'completion_tokens' | 'total_tokens', number>>;
}

const server = await TestServer.start(t, WITH_TOOLS, toolFixtures);

async function completion(text: string, fields: object = {}): Promise<Completion> {
  return (await server.chat(saying(text, fields))).body as Completion;
}

t.test('C-075 C-076 C-077 C-083 a completion has the stated fields and those of the reference API', async (t) => {
  const before = Math.floor(Date.now() / 1000);
  const first = await completion('Hi');
  const after = Math.floor(Date.now() / 1000);
  t.match(first, {
    id: /^chatcmpl-[0-9A-Za-z]{29}$/,
    object: 'chat.completion',
    model: 'assistant',
    service_tier: 'default',
  });
  t.ok(Number.isInteger(first.created) && first.created >= before && first.created <= after);
  t.strictSame(first.choices, [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hi', refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ]);
  t.notOk('error' in first);
  t.not((await completion('Hi')).id, first.id);
});

t.test('C-078 usage is the sum over all model calls of the run', async (t) => {
  server.models.enqueue(
    { toolCalls: [{ name: 'clock', arguments: {} }], usage: { promptTokens: 10, completionTokens: 3, cachedTokens: 4 } },
    { text: 'Late.', usage: { promptTokens: 20, completionTokens: 2, reasoningTokens: 1 } },
  );
  t.strictSame((await completion('What time is it?')).usage, {
    prompt_tokens: 30,
    completion_tokens: 5,
    total_tokens: 35,
    prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 1,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  });
  server.models.enqueue({ text: 'I do not count.', usage: null });
  t.match((await completion('Hi')).usage, { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });
});

t.test('C-079 an agent’s fingerprint survives a restart and differs from that of other agents', async (t) => {
  const { system_fingerprint: own } = await completion('Hi');
  t.match(own, /^fp_\w+$/);
  t.equal((await completion('Bye')).system_fingerprint, own);
  const streamed = await server.stream(saying('Hi'));
  t.ok(streamed.chunks.every((chunk) => 'system_fingerprint' in chunk && chunk.system_fingerprint === own));
  t.not((await completion('Hi', { model: 'bare' })).system_fingerprint, own);
  const restarted = await TestServer.start(t, WITH_TOOLS, toolFixtures);
  t.match((await restarted.chat(saying('Hi'))).body, { system_fingerprint: own });
});

t.test('C-080 a run with tool calls returns one answer with the last text only', async (t) => {
  const before = server.models.requests.length;
  server.models.enqueue(
    { text: 'Let me look.', toolCalls: [readTreasure, { id: 'call_time', name: 'clock', arguments: { timeZone: 'UTC' } }] },
    { text: 'And once more.', toolCalls: [{ id: 'call_list', name: 'files__list_directory', arguments: { path: '.' } }] },
    { text: 'Under the oak.' },
  );
  const reply = await server.chat(saying('Where is the treasure?'));
  t.equal(answerOf(reply), 'Under the oak.');
  t.notMatch(reply.text, /tool_calls|Let me look|once more/);
  t.match((reply.body as Completion).choices[0], { finish_reason: 'stop' });

  const requests = server.models.requests.slice(before).map(({ body }) => body);
  t.equal(requests.length, 3);
  const sent = requests[2]?.messages ?? [];
  t.match(
    sent.map(({ role }) => role),
    ['system', 'user', 'assistant', 'tool', 'tool', 'assistant', 'tool'],
  );
  const { tool_calls: [read, time] = [] } = sent[2] as { tool_calls?: { id: string }[] };
  t.match(sent[2], { content: 'Let me look.' });
  t.match(sent[3], { tool_call_id: read?.id, content: 'The treasure lies under the oak.' });
  t.match(sent[4], { tool_call_id: time?.id, content: /UTC/ });
  t.match(sent[6], { content: /treasure\.txt/ });
});

t.test('C-081 response bodies match the reference’s schema', async (t) => {
  server.models.enqueue(
    { text: 'plain' },
    { text: '', usage: null },
    { toolCalls: [readTreasure] },
    { text: 'cut', finishReason: 'length' },
    { refusal: 'I will not.' },
    { text: 'x', finishReason: 'content_filter' },
  );
  for (let i = 0; i < 5; i++) {
    const body = await completion('Hi');
    t.ok(isCompletion(body), JSON.stringify({ body, errors: isCompletion.errors }));
  }
  const handedOut = { model: 'fast', tools: [{ type: 'function', function: { name: 'f' } }] };
  server.models.enqueue({ toolCalls: [{ name: 'f', arguments: {} }] });
  t.ok(isCompletion(await completion('Hi', handedOut)));
});

t.test('C-082 an answer cut by the token limit has finish_reason length', async (t) => {
  server.models.enqueue({ text: 'Once upon a', finishReason: 'length' });
  t.match((await completion('Tell me')).choices[0], { message: { content: 'Once upon a' }, finish_reason: 'length' });
  server.models.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { text: 'It is', finishReason: 'length' });
  t.match((await completion('What time is it?')).choices[0], { message: { content: 'It is' }, finish_reason: 'length' });
});

t.test('C-084 all kinds of characters, and empty text, are returned unchanged', async (t) => {
  for (const text of ['😀 𝄞 𠮷', '\u2028\u2029\u0000\u007f\ufffd', '"\\/\b\f\n\r\t', 'e\u0301 ﷽ \u202e', '</script>', '']) {
    server.models.enqueue({ text }, { text: [...text] });
    t.equal(answerOf(await server.chat(saying(text))), text);
    t.equal(server.asked.messages.at(-1)?.content, text, 'in both directions');
    t.equal((await server.stream(saying(text))).text, text);
  }
});

t.test('variables in params reach the model server as the protocol wants them, and in body as text', async (t) => {
  const yaml = TRANSPORTS + ASSISTANT.replace('apiKey:', `body: { top_k: "\${TOP_K}" }, apiKey:`);
  const params = `{ temperature: "\${TEMPERATURE}", seed: "\${SEED}", stop: "\${STOP:-12}" }`;
  const app = await TestServer.start(t, yaml.replace('model: fast,', `model: fast, params: ${params},`), {
    env: { TOP_K: '40', TEMPERATURE: '0.7', SEED: '7' },
  });
  await app.chat(saying('Hi'));
  t.match(app.models.requests[0]?.body, { top_k: '40', temperature: 0.7, seed: 7, stop: '12' });
});
