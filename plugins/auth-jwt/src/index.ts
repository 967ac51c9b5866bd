import { AuthProviders, definePlugin } from '@plugboard/kernel';
import { checkConfig } from './check.js';
import { configSchema } from './config.js';
import { Issuer } from './issuer.js';
import { JwtProvider } from './jwt-provider.js';
import { ISSUER, KeyCache } from './key-cache.js';
import { PROJECTS } from './project.js';

export default definePlugin({
  name: '@plugboard/auth-jwt',
  apiVersion: 1,
  summary: 'Identifies callers by JSON Web Token of an OpenID Connect issuer',
  configSchema,
  check: checkConfig,
  register(ctx) {
    ctx.container.register(ISSUER, { useValue: new Issuer(ctx.config) });
    ctx.container.register(PROJECTS, { useValue: ctx.entries('projects') });
    ctx.container.registerSingleton(KeyCache);
    const provider = ctx.container.resolve(JwtProvider);
    ctx.contribute(AuthProviders, provider);
    return provider;
  },
});
