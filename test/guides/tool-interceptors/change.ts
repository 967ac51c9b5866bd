import { definePlugin, ToolInterceptors } from '@plugboard/kernel';

export default definePlugin({
  name: 'change',
  apiVersion: 1,
  summary: 'Limits refunds to 100 euros',
  configSchema: { type: 'object', properties: {} },
  register: (ctx) =>
    ctx.contribute(ToolInterceptors, (call, next) => {
      const amount = Math.min(Number(call.input.amount), 100);
      return next({ ...call, input: { ...call.input, amount } });
    }),
});
