/** A summary replaces the oldest turns. Between two summaries the bytes of a prompt only grow. */
import { ModelServer, type ReceivedRequest } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { created } from '../support/respond.js';
import { saying, TestServer } from '../support/test-server.js';

const PROMPT = 'You are the assistant.';
const agents = (history: string) => `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools: { clock: {} }
agents:
  assistant: { model: fast, system: ${PROMPT}, tools: [clock]${history} }
`;

/** Whether a request is for a summary: it has another prompt. */
const isForSummary = ({ body }: ReceivedRequest) => body.messages[0]?.content !== PROMPT;
const open = ({ text }: ReceivedRequest) => text.slice(0, -2);

t.test('a prompt changes only where a summary has replaced its oldest turns, also over a restart', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const sessions = `sessions: { use: sqlite, path: ${JSON.stringify(`${t.testdir()}/sessions.db`)} }\n`;
  const config = liveConfig('{}', agents(', history: { policy: summarize, maxMessages: 16 }')) + sessions;
  const start = () => TestServer.start(t, config, { env: { MODEL_URL: models.url } });
  let answers = 0;
  models.respond((request) => ({ text: isForSummary(request) ? `Summary ${answers}.` : `Answer ${++answers}.` }));
  let app = await start();
  for (let turn = 1; turn <= 20; turn++) {
    if (turn % 3 === 0) {
      await app.stop();
      app = await start();
    }
    t.equal((await app.chat(saying(`Question ${turn}?`, { session_id: 's' }))).status, 200);
  }

  const first = models.requests[0];
  const unchanged = first?.text.slice(0, first.text.indexOf(',{"role":"user"')) ?? '';
  t.match(unchanged, PROMPT);
  let summaries = 0;
  let question = 0;
  for (const [index, request] of models.requests.entries()) {
    if (isForSummary(request)) {
      summaries++;
      continue;
    }
    question++;
    const { messages } = request.body;
    const before = models.requests[index - 1];
    t.ok(request.text.startsWith(unchanged), 'the tools and the prompt stay');
    if (before && !isForSummary(before)) t.ok(request.text.startsWith(open(before)), `question ${question}`);
    // Of the messages only the first after the prompt has a summary; the others are as they were.
    const [, oldest, ...rest] = messages.map(({ content }) => content);
    t.match(JSON.stringify(oldest), summaries > 0 ? /Summary \d+\./ : /Question 1\?/);
    const kept = rest.length / 2;
    const written = Array.from({ length: kept }, (_, turn) => [
      `Answer ${question - kept + turn}.`,
      `Question ${question - kept + turn + 1}?`,
    ]);
    t.strictSame(rest, written.flat());
  }
  t.equal(question, 20);
  t.ok(summaries >= 2 && summaries <= 6, `${summaries} summaries`);
});

t.test('a compacted conversation keeps its bytes from turn to turn', async (t) => {
  const app = await TestServer.start(t, liveConfig('{}', agents('')));
  app.models.enqueue({ text: 'The cat is Tom.' });
  const input: object[] = [{ role: 'user', content: 'My cat is Tom.' }];
  const { body } = await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', input });
  const conversation = [...(body as { output: object[] }).output];
  for (const text of ['Who?', 'And then?', 'Why?']) {
    conversation.push({ role: 'user', content: text });
    conversation.push(...(await created(app, { store: false, input: conversation })).output);
  }
  const [, ...requests] = app.models.requests;
  for (const [index, request] of requests.entries()) {
    const before = requests[index - 1];
    t.ok(request.text.startsWith(before ? open(before) : ''), `turn ${index + 1}`);
  }
  t.equal(requests.length, 3);
});

t.test('a session that no longer fits loses its oldest turns in steps, and keeps its bytes in between', async (t) => {
  const app = await TestServer.start(t, liveConfig('{}', agents(', history: { maxMessages: 32 }')));
  app.models.respond(({ body }) => ({ text: `Answer to ${body.messages.length}.` }));
  for (let turn = 0; turn < 60; turn++) await app.chat(saying(`Question ${turn}?`, { session_id: 's' }));
  const { requests } = app.models;
  const changed = requests.filter(
    (request, index) => index > 0 && !request.text.startsWith(open(requests[index - 1] as ReceivedRequest)),
  );
  t.equal(changed.length, 11, 'once in four turns, after the first 16');
});
