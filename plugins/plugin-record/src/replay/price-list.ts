import { randomUUID } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { compose, type Server } from '@plugboard/kernel';
import { type ModelCall, type ModelInterceptor, ModelInterceptors, OPEN } from '@plugboard/kernel/contracts';
import type { Attempt } from '../format/recording.js';
import { addDecimals } from './decimals.js';

const USAGE = '@plugboard/plugin-usage';

/** What `usage` publishes of each answer that it charges. */
interface Charge {
  readonly agent: string;
  readonly currency: string;
  /** Decimal text. Undefined if the connection has no price. */
  readonly cost: string | undefined;
}

const charges = channel('plugboard.charge');

/**
 * The prices of a configuration: what its entry of `usage` charges. That entry alone runs, with
 * sums in memory and without budgets.
 */
export class PriceList {
  /** Undefined before anything has been charged. */
  currency: string | undefined;
  /** The sum so far, as decimal text. */
  total = '0';
  readonly #server: Server;
  readonly #charge: ModelInterceptor;
  /** The agent of the calls: no other charge of the process has it. */
  readonly #agent: string;

  private constructor(server: Server, charge: ModelInterceptor, agent: string) {
    this.#server = server;
    this.#charge = charge;
    this.#agent = agent;
    charges.subscribe(this.#onCharge);
  }

  /**
   * Returns undefined if the configuration has no entry of `usage`.
   * @throws ConfigError, StartError
   */
  static async open(file: string): Promise<PriceList | undefined> {
    const common = {
      file,
      omit: ['transports', 'auth', 'responses', 'tools', 'agents', 'projects', 'defaultAgent'],
      logTo: { write: () => {} },
    };
    const replace = { sessions: { use: 'memory' }, log: { level: 'error' } };
    const plan = await compose({ ...common, omit: ['transports', 'auth', 'responses'], replace });
    const found = plan.host.entries().find(({ plugin }) => plugin === USAGE);
    if (!found) return undefined;
    const plugins = (section: unknown) => onlyUsage(section, found.entry);
    const server = await compose({ ...common, replace: { ...replace, plugins } });
    await server.start();
    const contribution = server
      .extensions(ModelInterceptors)
      .all()
      .find(({ entry }) => entry === found.entry);
    if (contribution) return new PriceList(server, contribution.value, `recorded turns ${randomUUID()}`);
    await server.stop();
    return undefined;
  }

  /** Adds what the answers of a turn cost. */
  async add(attempts: readonly Attempt[]): Promise<void> {
    for (const attempt of attempts) {
      for await (const _ of this.#charge(callOf(attempt, this.#agent), () => answerOf(attempt)));
    }
  }

  async close(): Promise<void> {
    charges.unsubscribe(this.#onCharge);
    await this.#server.stop();
  }

  readonly #onCharge = (message: unknown): void => {
    const { agent, currency, cost } = message as Charge;
    if (agent !== this.#agent) return;
    this.currency = currency;
    if (cost !== undefined) this.total = addDecimals(this.total, cost);
  };
}

/** The entry of `usage` without its budgets. */
function onlyUsage(section: unknown, entry: string): object {
  const named = Object.entries((section ?? {}) as Readonly<Record<string, object>>);
  return Object.fromEntries(
    named.flatMap(([key, value]) => (`plugins.${key}` === entry ? [[key, { ...value, budgets: [] }]] : [])),
  );
}

function callOf({ step, attempt, connection, model, messages, tools, params }: Attempt, agent: string): ModelCall {
  const request = {
    messages,
    tools,
    params,
    incremental: false,
    requestId: '',
    session: undefined,
    user: undefined,
    headers: {},
  };
  const { signal } = new AbortController();
  return {
    turnId: '',
    agent,
    principal: OPEN,
    session: undefined,
    step,
    attempt,
    connection,
    model,
    request,
    signal,
  };
}

async function* answerOf({ events }: Attempt) {
  if (events.length > 0) yield events;
}
