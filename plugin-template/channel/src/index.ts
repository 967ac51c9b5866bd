import { definePlugin } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { StarterChannel } from './starter-channel.ts';

export default definePlugin({
  name: 'plugboard-transport-starter',
  apiVersion: 1,
  summary: 'Answers the messages of a chat platform',
  configSchema,
  // The platform gives its messages to one poller: a reload stops the old one first.
  exclusive: true,
  check({ agent }, { entries }) {
    const agents = entries('agents');
    if (agents.includes(agent)) return [];
    return [{ path: ['agent'], message: `there is no agent "${agent}"; known: ${agents.join(', ') || 'none'}` }];
  },
  register(ctx) {
    const channel = new StarterChannel(ctx);
    return {
      start: () => channel.start(),
      stop: (signal) => channel.stop(signal),
    };
  },
});
