/**
 * Recorded requests of coding agents: the step after two parallel calls of a tool. Long texts are
 * cut, and ids of the user and the machine replaced.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { TestServer } from '../support/test-server.js';

interface Recorded {
  readonly client: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

const recorded = (name: string): Recorded =>
  JSON.parse(readFileSync(join(import.meta.dirname, `../fixtures/coding-agents/${name}.json`), 'utf8'));

const server = await TestServer.start(
  t,
  `
transports:
  http: { port: 0 }
  chat-completions: {}
  messages: {}
  responses: {}
  sse: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  claude-coder: { model: fast, clientTools: passthrough }
`,
);

/** The end of a stream, what had no effect, and what the model was asked. */
async function ask({ path, headers, body }: Recorded) {
  server.models.enqueue({ text: 'Both.' });
  const reply = await server.request('POST', path, headers, body);
  const { messages, tools } = server.asked as unknown as {
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
    readonly tools: readonly { readonly function: { readonly name: string } }[];
  };
  return {
    text: reply.text,
    ignored: reply.headers.get('x-ignored-params'),
    roles: messages.map(({ role }) => role).join(' '),
    results: messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
    tools: tools.map((tool) => tool.function.name),
  };
}

t.test('CL-20 CL-21 CL-22 CL-25 a recorded request of Claude Code is answered', async (t) => {
  const { text, ignored, roles, results, tools } = await ask(recorded('claude-code'));
  t.match(text, /"text":"Both\."[\s\S]*"stop_reason":"end_turn"[\s\S]*event: message_stop/);
  const sealed = 'messages.2.content.0.redacted_thinking'; // by the server of the recording
  t.equal(ignored, `system.0.x-anthropic-billing-header, ${sealed}, context_management`);
  t.equal(roles, 'system user system assistant tool tool');
  t.strictSame(results, ['first-2', 'second-4']);
  t.strictSame(tools, ['Bash', 'DeferredToolPlaceholder', 'Edit', 'ToolSearch']);
});

t.test('CL-1 CL-2 CL-5 a recorded request of Codex CLI is answered', async (t) => {
  const { text, ignored, roles, results, tools } = await ask(recorded('codex'));
  t.match(text, /"delta":"Both\."[\s\S]*event: response\.completed/);
  t.equal(ignored, 'client_metadata, tools.3.web_search');
  t.equal(roles, 'system system user user assistant tool tool');
  t.match(results, [/^Chunk ID: 2049ea/, /^Chunk ID: ed01e9/]);
  t.strictSame(tools, ['exec_command', 'multi_agent_v1__close_agent', 'multi_agent_v1__wait_agent', 'view_image']);
  t.match(server.asked, { prompt_cache_key: /^0{8}-/ });
});
