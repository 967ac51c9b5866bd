/**
 * The nginx.conf that `plugboard init` writes, in a real nginx before servers over one PostgreSQL.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { freePort } from '../../../plugins/store-postgres/test/real-postgres.js';
import { startNameServer } from '../../support/name-server.js';
import { startNginx } from '../../support/nginx.js';
import { send } from '../client.js';
import { answerTo, modelOf, textOfTurn } from '../known-turns.js';
import { Cluster } from './cluster.js';
import { startCounter } from './counter.js';

const SERVERS = 2;
const TEMPLATE = join(import.meta.dirname, '../../../plugins/cli/templates/distribution/nginx.conf');
t.setTimeout(120_000);

t.test('turns of one session go on over all servers behind nginx, and past one that has gone', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  models.respond(({ body }) => modelOf(body, () => Promise.resolve()));
  const counter = await startCounter(t);
  // Long enough for a slow machine: no server is lost here.
  const lease = 120;
  const cluster = await Cluster.start(t, { servers: SERVERS, lease, env: { MODEL_URL: models.url, COUNTER_URL: counter.url } });
  const names = await startNameServer(t, () => cluster.servers.map(({ url }) => new URL(url).hostname));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const [, http = ''] = /^http \{\n(.*)^\}/ms.exec(readFileSync(TEMPLATE, 'utf8')) ?? [];
  const { port: serverPort } = new URL(cluster.servers[0]?.url ?? '');
  const site = http
    .replace('listen 80;', `listen 127.0.0.1:${port};`)
    .replace('resolver 127.0.0.11 ', `resolver 127.0.0.1:${names} `)
    .replace('distribution-name:8080', `servers.test:${serverPort}`);
  await startNginx(t, site, url);

  let number = 0;
  const say = async () => {
    const text = textOfTurn('ann', ++number, 'count');
    const seen = await send({ url, agent: 'assistant', session: 's', text, stream: number % 2 === 0 });
    t.match(seen, { saw: 'end', text: new RegExp(`${answerTo(text)}$`) });
  };
  for (let n = 0; n < 10; n++) await say();
  const [gone, other] = cluster.servers;
  t.equal(await gone?.stop(), 0);
  for (let n = 0; n < 6; n++) await say();
  t.equal(await other?.stop(), 0);
  const { kept } = await cluster.read([['s', 'assistant']]);
  t.equal(kept.get('s')?.version, number);
  t.ok([...counter.counts.values()].every((count) => count === 1));
});
