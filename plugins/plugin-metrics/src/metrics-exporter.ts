import { type Lifecycle, ModelConnectors, type PluginContext } from '@plugboard/kernel';
import type { ModelInterceptor } from '@plugboard/kernel/contracts';
import { ChannelMeasurements } from './channel-measurements.js';
import type { MetricsConfig } from './config.js';
import { Instruments } from './instruments.js';
import { MetricsServer } from './metrics-server.js';
import { ModelCalls } from './model-calls.js';
import { Page } from './page.js';
import { processMetrics } from './process-metrics.js';
import { RunningTurns } from './running-turns.js';
import { exportServerState } from './server-state.js';

/** The metrics of an entry, and the page with them. Nothing is measured before it starts. */
export class MetricsExporter implements Lifecycle {
  readonly modelInterceptor: ModelInterceptor;
  readonly #context: PluginContext<MetricsConfig>;
  readonly #instruments = new Instruments();
  readonly #channels: ChannelMeasurements;
  #server: MetricsServer | undefined;

  constructor(context: PluginContext<MetricsConfig>) {
    const { clock, log } = context;
    this.#context = context;
    const turns = new RunningTurns();
    this.#channels = new ChannelMeasurements(this.#instruments, turns, clock, log);
    this.modelInterceptor = new ModelCalls(this.#instruments, turns, clock, context.late(ModelConnectors)).intercept;
    exportServerState(this.#instruments, context);
  }

  /** @throws Error if the port is taken. */
  async start(signal: AbortSignal): Promise<void> {
    const { config, entry, clock, log } = this.#context;
    const page = new Page([processMetrics(), this.#instruments.registry], clock);
    const server = new MetricsServer(config, entry, page, clock, log);
    await server.start(signal);
    this.#server = server;
    this.#channels.start();
  }

  async stop(): Promise<void> {
    this.#channels.stop();
    await this.#server?.stop();
    this.#server = undefined;
  }
}
