/**
 * Secrets in the environment of a server, and code that looks for them there. Each server is a
 * process of its own.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { ASSISTANT, saying, TRANSPORTS } from '../../support/test-server.js';
import { ServerProcess } from '../support/server-process.js';

/** A plugin that takes secrets as options, and that can look at its environment in three ways. */
const CURIOUS = `
  import { execFileSync } from 'node:child_process';
  import { definePlugin } from '@plugboard/kernel';
  import { HttpRoutes } from '@plugboard/transport-http';
  const text = { type: 'string', default: '' };
  export default definePlugin({
    name: 'curious', apiVersion: 1, summary: 'Looks around',
    configSchema: { type: 'object', properties: { pin: { ...text, secret: true }, address: text, folder: text, port: text, later: text } },
    register(ctx) {
      ctx.contribute(HttpRoutes, {
        method: 'GET', path: '/look', access: 'public', body: 'none', startsWork: false,
        handle: () => ({ status: 200, body: {
          options: ctx.config,
          own: process.env,
          child: execFileSync('env', { encoding: 'utf8' }),
          report: process.report.getReport().environmentVariables,
        } }),
      });
    },
  });
`;

const SECRETS = {
  PIN: '4711',
  DATABASE_PASSWORD: 'a long password',
  LATER: 'a secret of later',
  MODEL_KEY: 'key-of-a-model-server',
};
const PLAIN = { PORT_OF_IT: '12345', UNUSED: 'not named by the configuration' };

const yaml = (more: string) => `${TRANSPORTS}${ASSISTANT}plugins:
  curious: { use: ./curious.mjs, pin: "\${PIN}", address: "db://me:\${DATABASE_PASSWORD}@db", folder: "\${HOME}", port: "\${PORT_OF_IT}"${more} }
`;

t.test('S-45 secrets that the configuration takes from the environment are removed from it', async (t) => {
  const env = { ...SECRETS, ...PLAIN, HOME: '/home/of-the-server' };
  const server = await ServerProcess.start(t, { yaml: yaml(''), files: { 'curious.mjs': CURIOUS }, env });
  const look = async () => JSON.parse((await server.request('/look')).text);
  const chat = () =>
    server.request('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(saying('Hi')),
    });

  const { options, own, child, report } = await look();
  t.match(options, { pin: SECRETS.PIN, address: `db://me:${SECRETS.DATABASE_PASSWORD}@db` });
  for (const found of [own, report, linesOf(child)]) {
    t.match(found, { ...PLAIN, HOME: '/home/of-the-server', LATER: SECRETS.LATER });
    for (const name of ['PIN', 'DATABASE_PASSWORD', 'MODEL_KEY']) t.notOk(found[name], name);
  }
  t.equal((await chat()).status, 200);
  t.equal(server.models.requests.at(-1)?.headers.authorization, `Bearer ${SECRETS.MODEL_KEY}`);

  server.kill('SIGHUP');
  await server.logs('the configuration has not changed');
  writeFileSync(join(server.folder, 'plugboard.yaml'), yaml(`, later: "\${LATER}"`));
  server.kill('SIGHUP');
  await eventually(() => server.log.some(({ event }) => event === 'configuration_changed'));
  const changed = await eventually(async () => {
    const seen = await look();
    return seen.options.later === '' ? undefined : seen;
  });
  t.match(changed.options, { pin: SECRETS.PIN, later: SECRETS.LATER }, 'a reload has all variables');
  for (const found of [changed.own, changed.report, linesOf(changed.child)]) t.notOk(found.LATER);
  t.equal((await chat()).status, 200);
  for (const secret of Object.values(SECRETS)) t.notMatch(server.stderr + server.stdout, secret);
});

function linesOf(text: string): Record<string, string> {
  return Object.fromEntries(text.split('\n').map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]));
}
