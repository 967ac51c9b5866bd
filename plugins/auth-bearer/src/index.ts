import { AuthProviders, definePlugin } from '@plugboard/kernel';
import { Commands } from '@plugboard/kernel/contracts';
import { HttpRoutes } from '@plugboard/transport-http';
import { BearerTokens } from './bearer-tokens.js';
import { checkConfig } from './check-config.js';
import { tokenCommand } from './commands/index.js';
import { configSchema } from './config.js';
import { EphemeralTokenRoute } from './ephemeral-route.js';
import { TokenRegistry } from './registry/token-registry.js';

export default definePlugin({
  name: '@plugboard/auth-bearer',
  apiVersion: 1,
  summary: 'Identifies callers by API token',
  configSchema,
  fixedOptions: ['tokensFile'],
  credentials: { patterns: [/svc[pae]_[0-9A-Za-z]{38}/] },
  check: checkConfig,
  register({ config, clock, ids, log, contribute, resolvePath, entries }) {
    const path = resolvePath(config.tokensFile);
    const tokens = new BearerTokens({ config, path, projects: entries('projects'), clock, ids, log });
    contribute(AuthProviders, tokens.provider);
    contribute(HttpRoutes, new EphemeralTokenRoute(tokens.provider, tokens.ephemeral));
    const registry = new TokenRegistry({ path, config, projects: entries('projects'), entries, clock, ids });
    contribute(Commands, tokenCommand(registry), 'token');
    return tokens;
  },
});
