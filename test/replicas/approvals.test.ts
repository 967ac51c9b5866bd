/** Approvals over three servers and one schema of a real PostgreSQL. */
import t from 'tap';
import { newSchema } from '../../plugins/store-postgres/test/open-store.js';
import { realPostgres } from '../../plugins/store-postgres/test/real-postgres.js';
import { CALLERS, codeIn, ran, startApprovals } from '../approvals/support.js';
import { answerOf, type TestServer } from '../support/test-server.js';

const { anna, boss } = CALLERS;
const postgres = await realPostgres();
const env = { DATABASE_URL: postgres.url(), SCHEMA: newSchema() };
const more = `sessions: { use: postgres, url: "\${DATABASE_URL}", schema: "\${SCHEMA}" }\n`;
const start = () => startApprovals(t, { transports: '  approvals: {}\n', more, env });
const servers = [await start(), await start(), await start()] as const;
const [one, two, three] = servers;

const chat = (app: TestServer, content: string) =>
  app.chat({ model: 'ops', session_id: 's', messages: [{ role: 'user', content }] }, anna);
/** The first server's model calls the tool next. */
const calling = (command: string) => one.models.enqueue({ toolCalls: [{ name: 'shell__run', arguments: { command } }] });
const ranAnywhere = () => servers.flatMap((app) => ran(app));

t.test('PG-22 a call is asked for, decided and run on three servers: one decision wins, and it runs once', async (t) => {
  calling('make');
  t.match(answerOf(await chat(one, 'Make it')), /approve [A-Z2-9]{6}/);
  const { body } = await two.get('/v1/approvals', boss);
  const [waiting] = (body as { readonly data: readonly { readonly id: string }[] }).data;
  const decide = (app: TestServer, approve: boolean) => app.request('POST', `/v1/approvals/${waiting?.id}`, boss, { approve });
  const decisions = await Promise.all([decide(one, true), decide(two, true), decide(three, true)]);
  t.strictSame(decisions.map(({ status }) => status).toSorted(), [202, 409, 409]);
  t.strictSame(ranAnywhere(), []);
  three.models.enqueue({ text: 'Made it.' });
  t.equal(answerOf(await chat(three, 'Well?')), 'Made it.');
  t.strictSame(ran(three), ['make']);
  t.strictSame(ranAnywhere(), ['make']);
});

t.test('PG-22 lines that decide at once on two servers run the call once', async (t) => {
  calling('clean');
  const code = codeIn(answerOf(await chat(one, 'Clean it')));
  for (const app of [two, three]) app.models.respond(() => ({ text: 'Cleaned.' }));
  const replies = await Promise.all([two, three].map((app) => chat(app, `approve ${code}`)));
  for (const reply of replies) t.equal(reply.status, 200);
  t.equal(ranAnywhere().filter((command) => command === 'clean').length, 1);
});
