/** A file that cannot be applied changes nothing (configuration.md, rule 8). */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const MODELS = 'models:\n  fast: { use: openai, baseUrl: "$' + '{MODEL_URL}", model: big-1, apiKey: "$' + '{MODEL_KEY}" }\n';
const ASSISTANT = 'agents:\n  assistant: { model: fast, system: You are the first. }\n';
const YAML = TRANSPORTS + MODELS + ASSISTANT;
/** What every refused file changes besides its mistake. */
const NEXT = YAML.replace('the first', 'the second');

/** A plugin that fails in one phase. */
const plugin = (body: string) => `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'faulty', apiVersion: 1, summary: 'Fails', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const contribute = () => ctx.contribute(ToolSources, { single: false, tools: () => [] });
      ${body}
    },
  });
`;

const files = {
  'register.mjs': plugin('throw new Error("no luck");'),
  'start.mjs': plugin('contribute(); return { start() { throw new Error("port 1 is taken"); } };'),
  'hang.mjs': plugin('contribute(); return { start: () => new Promise(() => {}), startLimit: 200 };'),
  'empty.mjs': plugin('contribute();'),
  'broken.mjs': 'export default {{',
};

/**
 * Reloads with a file, and returns why it was refused, line by line. Checks that the server goes on
 * as before.
 */
async function refused(t: Test, app: TestServer, yaml: string): Promise<string[]> {
  await writeFile(join(app.started.folder, 'plugboard.yaml'), yaml);
  const { refused, changes } = await app.started.server.reload();
  t.strictSame(changes, []);
  t.equal((await app.chat(saying('hello'))).status, 200);
  t.match(app.asked.messages, [{ role: 'system', content: 'You are the first.' }]);
  t.match((await app.get('/health')).body, { ready: true });
  return refused?.message.split('\n').map((line) => line.replace(/(?:\S*\/)?server-\w+\//g, '')) ?? [];
}

t.test('rule 8: a bad file changes nothing, and the error names the place and the cure', async (t) => {
  const app = await TestServer.start(t, YAML, { files });
  const lines = NEXT.split('\n').length;
  for (const [what, added, message] of [
    ['syntax', 'tools: { a: {\n', /^plugboard\.yaml:\d+:\d+: invalid YAML/],
    ['an unknown section', 'tool: {}\n', `plugboard.yaml:${lines}:1 tool: unknown section, did you mean "tools"?`],
    ['an unknown option', 'log: { lvel: info }\n', `plugboard.yaml:${lines}:8 log.lvel: unknown option, did you mean "level"?`],
    ['an unknown level of the log', 'log: { level: loud }\n', /^plugboard\.yaml:\d+:15 log\.level: must be .* not "loud"/],
    [
      'an unknown plugin',
      'tools: { nothing: {} }\n',
      `plugboard.yaml:${lines}:10 tools.nothing: the entry has no "use", so its key names the plugin, and @plugboard/tool-nothing is not installed; add "use" with the name or the path of a plugin, or install the one you mean: @plugboard/tool-nothing, plugboard-tool-nothing or nothing`,
    ],
    [
      'a module with a syntax error',
      'tools: { a: { use: ./broken.mjs } }\n',
      /tools\.a\.use: the plugin at broken\.mjs cannot be loaded/,
    ],
    [
      'a reference that leads nowhere',
      'defaultAgent: assistnat\n',
      `plugboard.yaml:${lines}:15 defaultAgent: unknown agent "assistnat", did you mean "assistant"? (plugin @plugboard/agent-runtime 0.1.0)`,
    ],
    [
      'R-050 a plugin that throws in register',
      'tools: { a: { use: ./register.mjs } }\n',
      /tools\.a: cannot be registered: no luck/,
    ],
    [
      'R-050 a plugin that throws in start',
      'tools: { a: { use: ./start.mjs } }\n',
      /^plugboard\.yaml:\d+:10 tools\.a did not start: port 1 is taken \(plugin faulty 0\.1\.0, start\.mjs\)/,
    ],
    [
      'R-051 a plugin that hangs in start',
      'tools: { a: { use: ./hang.mjs } }\n',
      /^plugboard\.yaml:\d+:10 tools\.a did not start within 0\.2 s/,
    ],
    [
      'a tool that only the running server shows to be missing',
      'tools: { a: { use: ./empty.mjs } }\nprojects: {}\n',
      /agents\.assistant\.tools\[0\]: unknown tool "b"; entry "a" offers nothing \(plugin @plugboard\/agent-runtime/,
    ],
  ] as const) {
    const yaml = what.startsWith('a tool that') ? NEXT.replace('second. }', 'second., tools: [a/b] }') : NEXT;
    const [first = ''] = await refused(t, app, yaml + added);
    if (typeof message === 'string') t.equal(first.replace(/ \(plugin .*/, ''), message.replace(/ \(plugin .*/, ''), what);
    else t.match(first, message, what);
  }
  t.strictSame(app.started.server.leaving, []);
});

t.test('rule 8: what cannot change while the server runs is refused as a whole, by name', async (t) => {
  const app = await TestServer.start(t, `${YAML}sessions: { use: memory }\nlog: { level: info }\n`);
  const cannot = 'cannot change while the server runs; undo the change, or restart the server';
  const other = NEXT.replace('port: 0', 'host: localhost, port: 8081');
  t.strictSame(await refused(t, app, `${other}sessions: { use: sqlite, path: ./s.db }\nlog: { audit: ./audit.log }\n`), [
    `plugboard.yaml:3:17 transports.http.host: ${cannot}`,
    `plugboard.yaml:3:34 transports.http.port: ${cannot}`,
    `plugboard.yaml:12:18 sessions.use: ${cannot}`,
    `plugboard.yaml:13:15 log.audit: ${cannot}`,
  ]);
  t.match(await refused(t, app, `${NEXT}sessions: { use: memory, ttl: 1h }\n`), [`plugboard.yaml:12:31 sessions.ttl: ${cannot}`]);
});
