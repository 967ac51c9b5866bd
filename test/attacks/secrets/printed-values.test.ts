import { StartError } from '@plugboard/kernel';
import { startServer } from '@plugboard/testing';
import t from 'tap';
import { run } from '../../../plugins/cli/test/plugboard.js';

/** What somebody put into the wrong place: like a key, and a short word. */
const VALUES = ['sk-live-51Hf83kd92jd', 'hunter2'];

/** A file that is right. Each case puts a variable into one of its places. */
const FILE = {
  transports: { http: { port: 0 }, 'chat-completions': {} } as Record<string, object>,
  auth: { bearer: { tokens: [{ name: 'ci', project: 'default', token: 'token-of-the-test-0123456789' }] } } as unknown,
  sessions: { use: 'memory' } as object,
  models: { fast: { use: 'demo' } } as Record<string, object>,
  tools: { clock: {} } as Record<string, object>,
  agents: { assistant: { model: 'fast', tools: ['clock'] } } as Record<string, object>,
};
type File = typeof FILE & Record<string, unknown>;

const V = `\${VALUE}`;
/** Every reference, path, choice, number, name and format that a file has. */
const PLACES: Readonly<Record<string, Partial<File>>> = {
  'the model of an agent': { agents: { assistant: { model: V } } },
  'one of the models': { agents: { assistant: { model: ['fast', V] } } },
  'a part of a name': { agents: { assistant: { model: `x-${V}-y` } } },
  'a tool': { agents: { assistant: { model: 'fast', tools: [V] } } },
  'a tool of an entry': { agents: { assistant: { model: 'fast', tools: [`clock/${V}`] } } },
  'the project of an agent': { agents: { assistant: { model: 'fast', project: V } } },
  'the file of a prompt': { agents: { assistant: { model: 'fast', system: { file: V } } } },
  'a choice': { agents: { assistant: { model: 'fast', onBusy: V } } },
  'a duration': { agents: { assistant: { model: 'fast', timeout: V } } },
  'a number': { agents: { assistant: { model: 'fast', maxSteps: V } } },
  'a parameter': { agents: { assistant: { model: 'fast', params: { temperature: V } } } },
  'the default agent': { defaultAgent: V },
  'the default agent of a project': { projects: { acme: { defaultAgent: V } } },
  'the plugin of an entry': { models: { fast: { use: V } } },
  'a path to a plugin': { models: { fast: { use: `./${V}` } } },
  'an invalid plugin': { models: { fast: { use: `${V} and more` } } },
  'the plugin of the store': { sessions: { use: V } },
  'a name after unless': { models: { fast: { use: 'demo', unless: [V] } } },
  'a package of a provider': { models: { fast: { use: 'ai-sdk', model: 'm', provider: `@x/${V}` } } },
  'a module of a provider': { models: { fast: { use: 'ai-sdk', model: 'm', provider: `./${V}` } } },
  'a URL': { models: { fast: { use: 'openai', model: 'm', baseUrl: V } } },
  'a preset': { models: { fast: { use: 'openai', model: 'm', provider: V } } },
  'a port': { transports: { http: { port: V } } },
  'a host': { transports: { http: { port: 0, hosts: [`${V}/x`] } } },
  'an origin': { transports: { http: { port: 0, origins: [V] } } },
  'a size': { transports: { http: { port: 0, bodyLimit: V } } },
  'a project of a token': { auth: { bearer: { tokens: [{ name: 'ci', project: V, token: 'token-of-the-test-0123456789' }] } } },
  'an agent of a token': {
    auth: { bearer: { tokens: [{ name: 'ci', project: 'default', token: 'token-of-the-test-0123456789', agents: [V] }] } },
  },
  'a scope': {
    auth: { bearer: { tokens: [{ name: 'ci', project: 'default', token: 'token-of-the-test-0123456789', scopes: [V] }] } },
  },
  'a digest': { auth: { bearer: { tokens: [{ name: 'ci', project: 'default', sha256: V }] } } },
  'the word of a section': { auth: V },
  'a folder of a store': { sessions: { use: 'sqlite', path: `./${V}/none/sessions.db` } },
  'a time zone': { tools: { clock: { timeZone: V } } },
  'a command': { tools: { clock: {}, files: { use: 'mcp', command: V } } },
  'the level of the log': { log: { level: V } },
  'a file of the log': { log: { audit: `/dev/null/${V}` } },
  'a limit': { limits: { memory: V } },
};

const asYaml = (change: Partial<File>) => JSON.stringify({ ...FILE, ...change });

for (const [place, change] of Object.entries(PLACES)) {
  t.test(`S-62 ${place} that comes from a variable is not printed`, async (t) => {
    for (const value of VALUES) {
      const env = { VALUE: value };
      const started = await startServer(asYaml(change), { env }).catch((error: unknown) => error as Error);
      if (!(started instanceof Error)) {
        await started.stop();
        t.notMatch(JSON.stringify(started.logs), value);
        continue;
      }
      // What is refused when it starts is in the log, which has its own rule for what is secret.
      if (started instanceof StartError) continue;
      t.equal(started.name, 'ConfigError');
      t.notOk(started.message.includes(value), started.message);
      t.match(started.message, /plugboard\.yaml:1:\d+ /);
    }
  });
}

t.test('S-62 an optional entry that is disabled shows no value of a variable', async (t) => {
  const [value = ''] = VALUES;
  const models = {
    fast: { use: 'demo' },
    gone: { use: V, optional: true },
    far: { use: 'ai-sdk', model: 'm', provider: V, optional: true },
  };
  const cwd = t.testdir({ 'plugboard.yaml': asYaml({ models, auth: 'open' }) });
  const { code, stdout, stderr } = await run(t, ['check'], { cwd, env: { VALUE: value } });
  t.equal(code, 0, stderr);
  t.match(stdout, /disabled +models\.gone: the package .*\$\{VALUE\} is not installed/);
  t.match(stdout, /disabled +models\.far: the package \$\{VALUE\} is not installed/);
  t.notMatch(stdout + stderr, value);
});

t.test('S-62 a chat that cannot start shows no secret', async (t) => {
  const [value = ''] = VALUES;
  const cwd = t.testdir({ 'plugboard.yaml': asYaml({ tools: { clock: {}, files: { use: 'mcp', command: V } } }) });
  const { code, stderr } = await run(t, ['chat'], { cwd, env: { VALUE: value } });
  t.equal(code, 1);
  t.match(stderr, /tools\.files did not start: .*\[redacted\]/);
  t.notMatch(stderr, value);
});
