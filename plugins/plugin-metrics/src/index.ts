import { definePlugin } from '@plugboard/kernel';
import { ModelInterceptors } from '@plugboard/kernel/contracts';
import { checkConfig, configSchema } from './config.js';
import { MetricsExporter } from './metrics-exporter.js';

export default definePlugin({
  name: '@plugboard/plugin-metrics',
  apiVersion: 1,
  summary: 'Serves metrics for Prometheus on a port of its own',
  configSchema,
  exclusive: true, // the port, and what is counted
  check: checkConfig,
  register(ctx) {
    const exporter = new MetricsExporter(ctx);
    ctx.contribute(ModelInterceptors, exporter.modelInterceptor);
    return exporter;
  },
});
