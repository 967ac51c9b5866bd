import { checkChannel, openChannel } from '@plugboard/channel-kit';
import { definePlugin } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { StarterPlatform } from './platform.ts';

export default definePlugin({
  name: 'plugboard-transport-starter',
  apiVersion: 1,
  summary: 'Answers the messages of a chat platform',
  configSchema,
  // The platform gives its messages to one poller: a reload stops the old one first.
  exclusive: true,
  check: checkChannel,
  register(ctx) {
    const { url, token } = ctx.config;
    return openChannel(ctx, new StarterPlatform(url, token, () => ctx.state.get('offset')));
  },
});
