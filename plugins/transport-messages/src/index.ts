import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { TurnRoute } from '@plugboard/turn-routes';
import { configSchema } from './config.js';
import { CountTokens } from './count-tokens.js';
import { Messages } from './messages.js';
import { Models } from './models.js';
import { PROBES, UNKNOWN } from './probes.js';

export default definePlugin({
  name: '@plugboard/transport-messages',
  apiVersion: 1,
  summary: 'Answers POST /v1/messages, the Anthropic Messages API, where `model` names an agent',
  configSchema,
  register(ctx) {
    const runtimes = ctx.extensions(AgentRuntimes);
    const { name, config, clock, ids, state } = ctx;
    const messages = new TurnRoute(new Messages({ config, ids, state }), { name, runtimes, clock });
    const routes = [messages, new CountTokens(runtimes), ...new Models(runtimes).routes, ...PROBES, ...UNKNOWN];
    for (const route of routes) ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
  },
});
