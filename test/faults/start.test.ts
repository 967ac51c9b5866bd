import { compose } from '@plugboard/kernel';
import type { HostServer } from '@plugboard/kernel/internal';
import { startServer } from '@plugboard/testing';
import t from 'tap';
import { TRANSPORTS } from '../support/test-server.js';

const MODELS = 'models: { fast: { use: openai, baseUrl: "http://127.0.0.1:9/v1", model: m } }\n';

t.test('an alias that refers to itself is an error with its place', async (t) => {
  for (const [yaml, message] of [
    [`${TRANSPORTS}agents: &a { one: *a }\n`, /plugboard\.yaml:8:19: the alias "a" refers to a value that contains it/],
    [`${TRANSPORTS}plugins: &a [*a]\n`, /the alias "a" refers to a value that contains it/],
    [
      `${TRANSPORTS}agents:\n  a0: &a0 [x, x]\n${Array.from({ length: 20 }, (_, i) => `  a${i + 1}: &a${i + 1} [*a${i}, *a${i}]\n`).join('')}`,
      /too many aliases/,
    ],
  ] as const) {
    await t.rejects(startServer(yaml), { name: 'ConfigError', message });
  }
});

t.test('an agent name that no request could contain is refused', async (t) => {
  for (const name of ['""', '" "', '"\\t"', '" padded"', JSON.stringify('x'.repeat(257))]) {
    const yaml = `${TRANSPORTS}${MODELS}agents: { ${name}: { model: fast } }\n`;
    await t.rejects(startServer(yaml), { name: 'ConfigError', message: /the name of an agent/ }, name);
  }
});

t.test('routes that no entry serves are a warning that names the missing transport', async (t) => {
  const cwd = t.testdir({ 'plugboard.yaml': 'transports: { chat-completions: {}, websocket: {} }\n' });
  const { inspection } = (await compose({ cwd, env: {} })) as HostServer;
  t.same(inspection.warnings, [
    'plugboard.yaml:1:15: transports.chat-completions contributes to transport-http.routes, which no entry reads; add http: {} under transports, which serves the routes',
    'plugboard.yaml:1:37: transports.websocket contributes to transport-http.upgrades, which no entry reads; add http: {} under transports, which serves the paths',
  ]);
});

t.test('an unknown default agent is reported, whatever its name', async (t) => {
  for (const name of ['constructor', 'toString', '__proto__', 'missing']) {
    const message = new RegExp(`unknown agent "${name}"`);
    await t.rejects(
      startServer(`${TRANSPORTS}${MODELS}agents: { assistant: { model: fast } }\ndefaultAgent: ${name}\n`),
      { message },
      name,
    );
  }
});
