import { createRequire } from 'node:module';
import { AuthProviders, definePlugin } from '@plugboard/kernel';
import { HttpRoutes, HttpUpgrades } from '@plugboard/transport-http';
import { checkConfig, configSchema } from './config.js';
import { Playground } from './playground.js';

const { version } = createRequire(import.meta.url)('../package.json') as { version: string };

export default definePlugin({
  name: '@plugboard/transport-playground',
  apiVersion: 1,
  summary: 'Serves a web page for talking to agents and watching them work',
  configSchema,
  check: checkConfig,
  register(ctx) {
    const routes = ctx.late(HttpRoutes);
    const upgrades = ctx.late(HttpUpgrades);
    const playground = new Playground({
      config: ctx.config,
      version,
      paths: () => [
        ...routes.all().map(({ value }) => value.path),
        // the socket at /v1/responses does not mean that its HTTP API is there
        ...upgrades.all().flatMap(({ value: { path } }) => (path === '/v1/live' ? [path] : [])),
      ],
      authProviders: ctx.extensions(AuthProviders),
    });
    for (const route of playground.routes) ctx.contribute(HttpRoutes, route, route.path);
    return playground;
  },
});
