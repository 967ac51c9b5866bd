import { openChannel } from '@plugboard/channel-kit';
import { definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { ReplyAddresses } from './reply-address.js';
import { Signatures } from './signatures.js';
import { WebhookPlatform } from './webhook-platform.js';
import { webhookRoute } from './webhook-route.js';

export default definePlugin({
  name: '@plugboard/transport-webhook',
  apiVersion: 1,
  summary: 'Answers messages that other programs send and receive by signed webhooks',
  configSchema,
  exclusive: true,
  credentials: { patterns: [/whsec_[A-Za-z0-9+/=]+/] },
  check: checkConfig,
  register(ctx) {
    const { clock, config, name } = ctx;
    const signatures = new Signatures([config.secret].flat());
    const addresses = new ReplyAddresses(config.allowPrivate);
    const platform = new WebhookPlatform({ url: new URL(config.replyUrl), addresses, signatures, clock });
    const channel = openChannel(ctx, platform);
    ctx.contribute(HttpRoutes, webhookRoute({ name, signatures, inbox: channel, clock }));
    return channel;
  },
});
