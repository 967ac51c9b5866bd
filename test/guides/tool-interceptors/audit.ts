import { audit, definePlugin, ToolInterceptors } from '@plugboard/kernel';

export default definePlugin({
  name: 'audit',
  apiVersion: 1,
  summary: 'Writes an audit line for each call of a tool that writes',
  configSchema: { type: 'object', properties: {} },
  register: (ctx) =>
    ctx.contribute(ToolInterceptors, (call, next) => {
      const { entry, tool, agent, session, principal } = call;
      const fields = { tool: `${entry}/${tool}`, agent, session, token_id: principal.tokenId };
      if (call.effect === 'write') audit(ctx.log, 'tool_called', fields, 'a tool is called');
      return next(call);
    }),
});
