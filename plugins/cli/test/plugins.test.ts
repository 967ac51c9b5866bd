import { join } from 'node:path';
import t from 'tap';
import { distribution, run } from './plugboard.js';

const cwd = t.testdir(distribution);

t.test('as JSON, for programs', async (t) => {
  const { code, stdout, stderr } = await run(t, ['plugins', '--json'], { cwd });
  t.equal(code, 0);
  t.equal(stderr, '');
  const { plugins, routes, ...rest } = JSON.parse(stdout);
  t.same(rest, {});
  const [web, model, store, runtime] = plugins;
  t.equal(plugins.length, 4, 'what is disabled is not loaded');
  t.match(runtime, { entry: 'runtime', provides: [{ point: 'agent.runtime', name: 'runtime' }] });
  t.same(web, {
    name: 'web',
    version: '0.1.0',
    path: join(cwd, 'web.js'),
    entry: 'transports.web',
    provides: [{ point: 'agent.transport', name: 'web' }],
  });
  t.same(model, {
    name: 'model',
    version: '0.1.0',
    path: join(cwd, 'model.js'),
    entry: 'models.fast',
    provides: [
      { point: 'agent.model-connector', name: 'fast' },
      { point: 'test.routes', name: 'fast' },
    ],
    details: ['provider: none'],
  });
  t.match(store, {
    name: '@plugboard/store-memory',
    entry: 'sessions',
    provides: [{ point: 'agent.session-store', name: 'sessions' }],
  });
  t.same(routes, [{ method: 'POST', path: '/v1/chat/completions', plugin: 'model' }]);
});

t.test('as text, for people', async (t) => {
  const { code, stdout } = await run(t, ['plugins'], { cwd });
  t.equal(code, 0);
  t.match(
    stdout,
    `models.fast  model 0.1.0\n  ${join(cwd, 'model.js')}\n  provides agent.model-connector fast\n  provides test.routes fast\n  provider: none\n`,
  );
  t.match(stdout, 'models.gone  disabled: the variable GONE is not set\n');
  t.match(stdout, 'routes\n  POST /v1/chat/completions  model\n');
});
