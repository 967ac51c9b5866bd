import { openChannel } from '@plugboard/channel-kit';
import { definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { HttpReceiver } from './receiving/http-receiver.js';
import { SlackPlatform } from './slack-platform.js';

export default definePlugin({
  name: '@plugboard/transport-slack',
  apiVersion: 1,
  summary: 'Answers people in Slack',
  configSchema,
  exclusive: true,
  credentials: { patterns: [/x(?:ox[a-z]|app)-[A-Za-z0-9-]+/] },
  check: checkConfig,
  register(ctx) {
    const { config, name } = ctx;
    const http = config.signingSecret === undefined ? undefined : new HttpReceiver(config.signingSecret, ctx);
    if (http) ctx.contribute(HttpRoutes, http.route(name));
    return openChannel(ctx, new SlackPlatform(ctx, http));
  },
});
