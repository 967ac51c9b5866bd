import { definePlugin } from '@plugboard/kernel';
import { ResponseServices } from '@plugboard/open-responses';
import { HttpUpgrades } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { LiveConnections } from './upgrade/live-connections.js';
import { LiveUpgrade } from './upgrade/live-upgrade.js';

export default definePlugin({
  name: '@plugboard/transport-websocket',
  apiVersion: 1,
  summary: 'Serves the Responses API over WebSocket, at /v1/responses and /v1/live',
  configSchema,
  needs: ['responses'],
  register(ctx) {
    const connections = new LiveConnections(ctx);
    const services = ctx.extensions(ResponseServices);
    for (const path of ['/v1/responses', '/v1/live']) {
      ctx.contribute(HttpUpgrades, new LiveUpgrade(path, connections, services, ctx), path);
    }
    return connections;
  },
});
