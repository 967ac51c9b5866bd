import { AuthProviders, definePlugin } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { StarterAuth } from './starter-auth.ts';

export default definePlugin({
  name: 'plugboard-auth-starter',
  apiVersion: 1,
  summary: 'Identifies callers by API key',
  configSchema,
  register(ctx) {
    ctx.contribute(AuthProviders, new StarterAuth(ctx.config));
  },
});
