import { definePlugin, ToolInterceptors, type ToolOutput } from '@plugboard/kernel';
import { callerId } from '@plugboard/kernel/contracts';

export default definePlugin({
  name: 'cache',
  apiVersion: 1,
  summary: 'Remembers what read-only tools returned to a caller',
  configSchema: { type: 'object', properties: {} },
  register(ctx) {
    const cached = new Map<string, ToolOutput>();
    ctx.contribute(ToolInterceptors, async (call, next) => {
      const caller = callerId(call.principal); // undefined if the credential identifies nobody
      if (call.effect !== 'read' || caller === undefined) return next(call);
      const key = JSON.stringify([call.principal.project, caller, call.entry, call.tool, call.input]);
      const output = cached.get(key) ?? (await next(call));
      if (cached.size < 1000) cached.set(key, output);
      return output;
    });
  },
});
