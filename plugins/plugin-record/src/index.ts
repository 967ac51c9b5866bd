import { definePlugin, Interceptors, ToolInterceptors } from '@plugboard/kernel';
import { Commands, ModelInterceptors } from '@plugboard/kernel/contracts';
import { checkConfig } from './check-config.js';
import { rehearseCommand } from './commands/rehearse.js';
import { replayCommand } from './commands/replay.js';
import { configSchema } from './config.js';
import { Recorder } from './record/recorder.js';

export default definePlugin({
  name: '@plugboard/plugin-record',
  apiVersion: 1,
  summary: 'Records turns, to replay them under another configuration',
  configSchema,
  check: checkConfig,
  register(ctx) {
    const recorder = new Recorder(ctx);
    ctx.contribute(Interceptors, recorder.turns.interceptor);
    ctx.contribute(ModelInterceptors, recorder.turns.modelInterceptor);
    ctx.contribute(ToolInterceptors, recorder.turns.toolInterceptor);
    ctx.contribute(Commands, replayCommand(), 'replay');
    ctx.contribute(Commands, rehearseCommand(ctx.resolvePath(ctx.config.path)), 'rehearse');
    return recorder;
  },
});
