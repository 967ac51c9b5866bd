import { AuthProviders, definePlugin } from '@plugboard/kernel';
import { Commands } from '@plugboard/kernel/contracts';
import { createGraph } from '@plugboard/kernel/injection';
import { HttpRoutes } from '@plugboard/transport-http';
import { BearerAuth } from './bearer-auth.js';
import { checkConfig } from './check-config.js';
import { tokenCommand } from './commands/index.js';
import { configSchema } from './config.js';

export default definePlugin({
  name: '@plugboard/auth-bearer',
  apiVersion: 1,
  summary: 'Identifies callers by API token',
  configSchema,
  fixedOptions: ['tokensFile'],
  credentials: { patterns: [/svc[pae]_[0-9A-Za-z]{38}/] },
  check: checkConfig,
  register(ctx) {
    const { tokens, provider, route, registry } = createGraph(ctx, BearerAuth);
    ctx.contribute(AuthProviders, provider);
    ctx.contribute(HttpRoutes, route);
    ctx.contribute(Commands, tokenCommand(registry), 'token');
    return tokens;
  },
});
