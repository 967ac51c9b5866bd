import { definePlugin, ToolSources } from '@plugboard/kernel';
import { ClockTool, isTimeZone } from './clock-tool.js';
import { configSchema } from './config.js';

export default definePlugin({
  name: '@plugboard/tool-clock',
  apiVersion: 1,
  summary: 'Returns the current date and time',
  configSchema,
  check: (config) =>
    isTimeZone(config.timeZone)
      ? []
      : [{ path: ['timeZone'], message: `"${config.timeZone}" is not an IANA time zone: use a name such as "Europe/Paris"` }],
  register(ctx) {
    ctx.contribute(ToolSources, new ClockTool(ctx.config, ctx.clock));
  },
});
