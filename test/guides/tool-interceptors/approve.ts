import { definePlugin, ToolInterceptors } from '@plugboard/kernel';

export default definePlugin({
  name: 'approve',
  apiVersion: 1,
  summary: 'Asks a person about refunds over 200 euros',
  configSchema: { type: 'object', properties: {} },
  register: (ctx) =>
    ctx.contribute(ToolInterceptors, (call, next) => {
      if (Number(call.input.amount) > 200) call.postpone();
      return next(call);
    }),
});
