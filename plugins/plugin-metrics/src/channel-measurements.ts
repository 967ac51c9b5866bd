import { type Channel, channel, tracingChannel } from 'node:diagnostics_channel';
import type { Clock, Logger } from '@plugboard/kernel';
import { errorTypeOf } from './error-type.js';
import type { Instruments } from './instruments.js';
import { OTHER } from './label-values.js';
import type { PublishedCharge, PublishedRequest, PublishedStoreCall, PublishedTool, PublishedTurn } from './published.js';
import type { RunningTurns } from './running-turns.js';

/** The methods of HTTP. A caller may send any word as one. */
const METHODS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

/**
 * Measures what the server publishes on its diagnostics channels. All servers of a process publish
 * on the same ones.
 */
export class ChannelMeasurements {
  readonly #instruments: Instruments;
  readonly #turns: RunningTurns;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** When the running operations began. An entry goes with its operation. */
  readonly #begun = new WeakMap<object, number>();
  readonly #subscriptions: readonly { readonly channel: Channel; readonly onMessage: (message: unknown) => void }[];
  #hasFailed = false;

  constructor(instruments: Instruments, turns: RunningTurns, clock: Clock, log: Logger) {
    this.#instruments = instruments;
    this.#turns = turns;
    this.#clock = clock;
    this.#log = log;
    this.#subscriptions = [
      ...this.#operation<PublishedRequest>('plugboard.http', (request, seconds) => this.#onRequest(request, seconds)),
      this.#event<PublishedTurn>(tracingChannel('plugboard.turn').start as Channel, ({ turnId }) => turns.begin(turnId)),
      ...this.#operation<PublishedTurn>('plugboard.turn', (turn, seconds) => this.#onTurn(turn, seconds)),
      ...this.#operation<PublishedTool>('plugboard.tool', (tool, seconds) => this.#onTool(tool, seconds)),
      ...this.#operation<PublishedStoreCall>('plugboard.store', (call, seconds) => this.#onStoreCall(call, seconds)),
      this.#event<PublishedTool>(channel('plugboard.tool.abandoned'), ({ entry }) =>
        instruments.add(instruments.abandonedTools, { entry }),
      ),
      this.#event<PublishedCharge>(channel('plugboard.charge'), (charge) => this.#onCharge(charge)),
    ];
  }

  start(): void {
    for (const { channel, onMessage } of this.#subscriptions) channel.subscribe(onMessage);
  }

  stop(): void {
    for (const { channel, onMessage } of this.#subscriptions) channel.unsubscribe(onMessage);
  }

  #onRequest({ method, route, status, outcome }: PublishedRequest, seconds: number): void {
    const labels = {
      http_request_method: METHODS.has(method) ? method : '_OTHER',
      http_route: route ?? OTHER,
      // Without one, the connection broke before the reply.
      http_response_status_code: status ? String(status) : undefined,
      error_type: requestError(status, outcome),
    };
    this.#instruments.observe(this.#instruments.requests, labels, seconds);
  }

  #onTurn({ turnId, request, status = 'crashed', usage, record }: PublishedTurn, seconds: number): void {
    const instruments = this.#instruments;
    const agent = request.target.name;
    const gen_ai_agent_name = agent;
    // Only a turn that ended well has a usage. `content_filter` is a finish reason and a failure.
    const error_type = usage ? undefined : status;
    instruments.add(instruments.turns, { agent, status });
    instruments.observe(instruments.turnDuration, { gen_ai_agent_name, error_type }, seconds);
    if (record) instruments.observe(instruments.turnQueue, { agent }, record.queued / 1000);
    const counts = this.#turns.end(turnId);
    if (!counts) return;
    instruments.observe(instruments.turnInferences, { gen_ai_agent_name }, counts.inferences);
    instruments.observe(instruments.turnTools, { gen_ai_agent_name }, counts.tools);
  }

  #onTool({ turn, name, entry, isError, error }: PublishedTool, seconds: number): void {
    if (isError === undefined && error === undefined) return; // it waits for an approval, and has not run
    const counts = this.#turns.get(turn.id);
    if (counts) counts.tools++;
    const error_type = error !== undefined || isError ? 'tool_error' : undefined;
    // A tool without an entry is one that the agent does not have: the model wrote its name.
    const gen_ai_tool_name = entry ? name : OTHER;
    this.#instruments.observe(this.#instruments.toolDuration, { gen_ai_tool_name, error_type }, seconds);
  }

  #onStoreCall({ operation, error }: PublishedStoreCall, seconds: number): void {
    const error_type = error === undefined ? undefined : errorTypeOf(error, 'store_failed');
    this.#instruments.observe(this.#instruments.storeDuration, { operation, error_type }, seconds);
  }

  #onCharge({ agent, model, currency, cost }: PublishedCharge): void {
    const labels = { agent, model, currency };
    if (cost === undefined) this.#instruments.add(this.#instruments.unpricedCalls, labels);
    else this.#instruments.add(this.#instruments.cost, labels, Number(cost));
  }

  /** Subscriptions to the start and the end of an operation. One that began earlier is left out. */
  #operation<T extends object>(name: string, onEnd: (context: T, seconds: number) => void) {
    const { start, asyncEnd } = tracingChannel<unknown, T>(name);
    return [
      this.#event<T>(start as Channel, (context) => void this.#begun.set(context, this.#clock.monotonic())),
      this.#event<T>(asyncEnd as Channel, (context) => {
        const begun = this.#begun.get(context);
        if (begun !== undefined) onEnd(context, (this.#clock.monotonic() - begun) / 1000);
      }),
    ];
  }

  /**
   * A subscription. It runs within the turn or the request, and an error here would stop the
   * server: it is logged once instead.
   */
  #event<T>(channel: Channel, measure: (message: T) => void) {
    const onMessage = (message: unknown) => {
      try {
        measure(message as T);
      } catch (error) {
        if (!this.#hasFailed) this.#log.error({ err: error, channel: String(channel.name) }, 'the metrics miss a measurement');
        this.#hasFailed = true;
      }
    };
    return { channel, onMessage };
  }
}

/** A status from 500 on, or how a reply broke off. Mistakes of callers are not errors. */
function requestError(status = 0, outcome?: string): string | undefined {
  if (status >= 400) return status >= 500 ? String(status) : undefined;
  return outcome === 'ok' ? undefined : outcome;
}
