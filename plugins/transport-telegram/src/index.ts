import { openChannel } from '@plugboard/channel-kit';
import { definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { checkConfig, configSchema } from './config.js';
import { TelegramPlatform } from './telegram-platform.js';

export default definePlugin({
  name: '@plugboard/transport-telegram',
  apiVersion: 1,
  summary: 'Answers people in Telegram, as a bot',
  configSchema,
  credentials: {
    patterns: [/\b\d{3,}:[\w-]{30,}/],
    fields: ['x-telegram-bot-api-secret-token'],
  },
  // Telegram gives its messages to one poller.
  exclusive: true,
  check: checkConfig,
  register(ctx) {
    const platform = new TelegramPlatform(ctx);
    if (ctx.config.mode === 'webhook') ctx.contribute(HttpRoutes, platform.route);
    return openChannel(ctx, platform);
  },
});
