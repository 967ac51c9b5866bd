import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { TestServer, TRANSPORTS } from '../support/test-server.js';

const root = join(import.meta.dirname, '../..');

t.test('every token of a project reads, continues and deletes every session of it', async (t) => {
  const server = await TestServer.start(
    t,
    `${TRANSPORTS}  conversations: {}
auth:
  bearer:
    tokens:
      - { name: anna, project: one, token: token-of-anna-0123456789 }
      - { name: ben, project: one, token: token-of-ben-0123456789 }
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 } }
agents: { assistant: { model: fast, project: one } }
projects: { one: {} }
`,
  );
  const as = (name: string) => (path: string, method: string, body?: object) =>
    fetch(`${server.url}/v1/${path}`, {
      method,
      headers: { authorization: `Bearer token-of-${name}-0123456789`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const [anna, ben] = [as('anna'), as('ben')];
  const ask = (content: string) => ({ model: 'assistant', session_id: 'trip', messages: [{ role: 'user', content }] });
  server.models.enqueue({ text: 'One.' }, { text: 'Two.' });
  t.equal((await anna('chat/completions', 'POST', ask('the first question'))).status, 200);
  t.equal((await ben('chat/completions', 'POST', ask('the second question'))).status, 200);
  t.match(JSON.stringify(server.asked.messages), /the first question.*One\..*the second question/);
  const { data } = (await (await ben('conversations?agent=assistant', 'GET')).json()) as { data: { id: string }[] };
  t.equal(data.length, 1);
  t.match(await (await ben(`conversations/${data[0]?.id}/items`, 'GET')).text(), 'the first question');
  t.equal((await ben(`conversations/${data[0]?.id}`, 'DELETE')).status, 200);
  t.equal((await anna(`conversations/${data[0]?.id}`, 'GET')).status, 404);
});

t.test('where a project is explained, it is said that its tokens share its sessions', async (t) => {
  const pages = [
    'README.md',
    'docs/guides/operating.md',
    'docs/reference/authentication.md',
    'plugins/auth-bearer/README.md',
    'plugins/auth-jwt/README.md',
    'plugins/cli/templates/distribution/README.md',
    'plugins/cli/templates/distribution/plugboard.yaml',
  ];
  for (const page of pages) {
    const words = readFileSync(join(root, page), 'utf8').replaceAll(/[\s#]+/g, ' ');
    t.match(words, /every (?:token|subject)[^.]* reads, continues and deletes every session of it/i, page);
  }
});
