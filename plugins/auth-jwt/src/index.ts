import { AuthProviders, definePlugin } from '@plugboard/kernel';
import { checkConfig } from './check.js';
import { configSchema } from './config.js';
import { Issuer } from './issuer.js';
import { JwtProvider } from './jwt-provider.js';
import { KeyCache } from './key-cache.js';

export default definePlugin({
  name: '@plugboard/auth-jwt',
  apiVersion: 1,
  summary: 'Identifies callers by JSON Web Token of an OpenID Connect issuer',
  configSchema,
  check: checkConfig,
  register(ctx) {
    const keys = new KeyCache(new Issuer(ctx.config), ctx.clock, ctx.log);
    const provider = new JwtProvider(ctx.config, ctx.entries('projects'), keys, ctx.clock);
    ctx.contribute(AuthProviders, provider);
    return provider;
  },
});
