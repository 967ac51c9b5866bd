/** A channel of two whole servers over one schema of a real PostgreSQL. */
import { definePlugin } from '@plugboard/kernel';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { type ChannelEntry, channelOptions, openChannel } from '../../plugins/channel-kit/src/index.js';
import { ScriptedPlatform, type To } from '../../plugins/channel-kit/test/scripted-platform.js';
import { newSchema } from '../../plugins/store-postgres/test/open-store.js';
import { realPostgres } from '../../plugins/store-postgres/test/real-postgres.js';
import { TestServer } from '../support/test-server.js';

const postgres = await realPostgres();
const sessions = { use: 'postgres', url: postgres.url(), schema: newSchema(), lease: '5s', poolSize: 2 };

async function start() {
  const platform = new ScriptedPlatform();
  platform.receivesAnywhere = true;
  const opened: ChannelEntry<To, unknown, string>[] = [];
  const use = definePlugin({
    name: '@plugboard/transport-scripted',
    apiVersion: 1,
    summary: 'Answers the messages of a test',
    configSchema: { type: 'object', properties: channelOptions, required: ['agent'], additionalProperties: false },
    exclusive: true,
    register(ctx) {
      const channel = openChannel(ctx, platform);
      opened.push(channel);
      return channel;
    },
  });
  const app = await TestServer.start(t, (models) => ({
    transports: { http: { port: 0 }, desk: { use, agent: 'assistant' } },
    models: { fast: { use: 'openai', baseUrl: models, model: 'big-1' } },
    agents: { assistant: { model: 'fast' } },
    sessions,
  }));
  const isIn = (state: string) => eventually(() => opened[0]?.status().state === state);
  return { app, platform, isIn };
}

t.test('CH-10 PG-17 one server answers what both are given, and the other goes on when it stops', async (t) => {
  const one = await start();
  await one.isIn('connected');
  const two = await start();
  await two.isIn('standby');
  t.equal(await one.platform.say('one', 'c1'), 'taken');
  t.equal(await two.platform.say('two', 'c2', { ids: ['two'] }), 'taken');
  await eventually(() => one.platform.sent.length === 2);
  t.strictSame(one.platform.texts('c1'), ['one']);
  t.strictSame(one.platform.texts('c2'), ['two']);
  await one.app.stop();
  await two.isIn('connected');
  await two.platform.say('three', 'c1', { ids: ['three'] });
  await eventually(() => two.platform.sent.length === 1);
  t.strictSame(two.platform.texts(), ['three']);
  t.strictSame(
    two.app.asked.messages.map(({ content }) => content),
    ['one', 'one', 'three'],
  );
});
