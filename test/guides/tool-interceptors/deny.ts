import { definePlugin, ToolInterceptors } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';

export default definePlugin({
  name: 'deny',
  apiVersion: 1,
  summary: 'Refuses large refunds',
  configSchema: { type: 'object', properties: {} },
  register: (ctx) =>
    ctx.contribute(ToolInterceptors, (call, next) => {
      if (Number(call.input.amount) > 1000) throw new TurnError('invalid_request', 'Refunds end at 1000 euros.');
      return next(call);
    }),
});
