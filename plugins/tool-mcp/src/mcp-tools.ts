import type { Clock, Lifecycle, Logger, Tool, ToolCall, ToolSource } from '@plugboard/kernel';
import type { Timer, ToolResultParts } from '@plugboard/kernel/contracts';
import { CLOCK, CONFIG, ENTRY, inject, injectable, LOGGER } from '@plugboard/kernel/injection';
import { metaOf } from './call-meta.js';
import type { McpConfig } from './config.js';
import { Connection } from './connection.js';
import {
  callLost,
  callRefused,
  noAnswerInTime,
  notRunning,
  notSendable,
  notStarted,
  otherProtocol,
  stopped,
  wordsOf,
} from './errors.js';
import { listedTools } from './listed-tools.js';
import { MCP_TRANSPORTS, type McpTransports } from './mcp-transports.js';
import { toolResultOf } from './tool-result.js';

/** Milliseconds before the first attempt to bring a server back; each one that fails doubles it, up to the last. */
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30_000;
/** Milliseconds that a server must have lived for its end to count as a first one again. */
const STEADY = 30_000;
/** Milliseconds for a start and for each later one, and for reading a changed list. */
const ATTEMPT_LIMIT = 10_000;
/** Milliseconds from the first word of a change to reading the list: servers report every single change of many. */
const CHANGES_SETTLE = 100;

/**
 * The tools of one MCP server.
 *
 * 1. `start` opens the connection and reads the list of tools; it throws where either fails.
 * 2. When the server says that its list has changed, it is read again.
 * 3. When the connection ends, calls fail in words that say so, and it is opened anew after a pause; the tools stay declared meanwhile.
 * 4. `stop` ends the connection, or the attempt to open one, and waits until nothing is left of it.
 */
@injectable()
export class McpTools implements ToolSource, Lifecycle {
  readonly single = false;
  /** The kernel's limit comes after ours, because ours can say what the server has printed. */
  readonly startLimit = ATTEMPT_LIMIT + 1000;
  readonly #newTransport: McpTransports;
  readonly #config: McpConfig;
  readonly #entry: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  #tools: readonly Tool[] = [];
  /** The connection that serves. */
  #connection: Connection | undefined;
  /** When it began to, on the monotonic clock. */
  #since = 0;
  /** The attempt to open one that is under way, or was the last. */
  #attempt: Promise<void> | undefined;
  /** The end of the one that could not be opened last. */
  #leaving: Promise<void> | undefined;
  #pause = FIRST_PAUSE;
  #restart: Timer | undefined;
  #change: Timer | undefined;
  /** The readings of a changed list, one after the other. */
  #readings: Promise<void> = Promise.resolve();

  constructor(
    @inject(MCP_TRANSPORTS) newTransport: McpTransports,
    @inject(CONFIG) config: McpConfig,
    @inject(ENTRY) entry: string,
    @inject(CLOCK) clock: Clock,
    @inject(LOGGER) log: Logger,
  ) {
    this.#newTransport = newTransport;
    this.#config = config;
    this.#entry = entry;
    this.#clock = clock;
    this.#log = log;
  }

  tools(): readonly Tool[] {
    return this.#tools;
  }

  /** @throws McpServerError that names the program, how it ended and what it printed last. */
  start(signal: AbortSignal): Promise<void> {
    this.#attempt = this.#open(signal);
    return this.#attempt;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(stopped(this.#entry));
    this.#restart?.cancel();
    this.#change?.cancel();
    await this.#attempt?.catch(() => {}); // whoever made the attempt was told how it failed
    await this.#leaving;
    await this.#connection?.close();
  }

  async #open(outer?: AbortSignal): Promise<void> {
    let changedMeanwhile = false;
    const connection = new Connection(this.#newTransport(), {
      ended: () => this.#lost(connection),
      toolsChanged: () => {
        changedMeanwhile = true;
        if (this.#connection === connection) this.#readSoon();
      },
      oddity: (error) => this.#log.debug(`the MCP server behaves oddly: ${error.message.slice(0, 500)}`),
    });
    const limit = this.#limit(outer);
    try {
      await connection.open(limit.signal);
      this.#tools = this.#offered(await connection.list(limit.signal));
    } catch (error) {
      const { transport } = connection;
      const ending = transport.ending(); // asked before we end it ourselves
      this.#leaving = connection.close();
      if (this.#stopping.signal.aborted) throw stopped(this.#entry);
      const why = ending ?? (limit.signal.aborted ? noAnswerInTime(transport.peer) : otherProtocol(transport.peer, error));
      throw notStarted(transport.redact(why), transport.lastLines());
    } finally {
      limit.lift();
    }
    this.#connection = connection;
    if (changedMeanwhile) this.#readSoon(); // the list may have been read before the change
    this.#since = this.#clock.monotonic();
    this.#log.info({ server: connection.server, tools: this.#tools.length }, 'the MCP server is ready');
  }

  #lost(connection: Connection): void {
    if (this.#connection !== connection) return; // it never served: who tries to open it is told
    this.#connection = undefined;
    if (this.#stopping.signal.aborted) return;
    this.#log.warn({ lastLines: connection.transport.lastLines() }, `the MCP server is gone: ${connection.transport.ending()}`);
    if (this.#clock.monotonic() - this.#since >= STEADY) this.#pause = FIRST_PAUSE;
    this.#openLater();
  }

  #openLater(): void {
    this.#restart = this.#clock.after(this.#pause, () => {
      this.#attempt = this.#openAgain();
    });
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  async #openAgain(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      await this.#leaving;
      if (this.#stopping.signal.aborted) return;
      this.#log.warn(`the MCP server could not be restarted and will be again: ${wordsOf(error)}`);
      this.#openLater();
    }
  }

  #readSoon(): void {
    this.#change ??= this.#clock.after(CHANGES_SETTLE, () => {
      this.#change = undefined;
      this.#readings = this.#readings.then(() => this.#readAgain());
    });
  }

  async #readAgain(): Promise<void> {
    const connection = this.#connection;
    if (!connection) return; // whoever opens the next one reads the list
    const limit = this.#limit();
    try {
      this.#tools = this.#offered(await connection.list(limit.signal));
      this.#log.info({ tools: this.#tools.length }, 'the MCP server has changed its tools');
    } catch (error) {
      if (this.#connection !== connection) return;
      this.#log.warn(`the changed list of tools could not be read, and the former one stays: ${wordsOf(error)}`);
    } finally {
      limit.lift();
    }
  }

  #offered(listed: readonly unknown[]): readonly Tool[] {
    const tools = listedTools(listed, (tool, why) => this.#log.warn({ tool }, `a tool of the MCP server is left out: ${why}`));
    if (tools.length === 0) this.#log.warn('the MCP server offers no tools');
    return tools.map((tool) => ({ ...tool, run: (input, call) => this.#run(tool.name, input, call) }));
  }

  async #run(name: string, input: Readonly<Record<string, unknown>>, call: ToolCall): Promise<ToolResultParts> {
    const connection = this.#connection;
    if (!connection) throw this.#stopping.signal.aborted ? stopped(this.#entry) : notRunning(this.#entry);
    try {
      return toolResultOf(await connection.call(name, input, metaOf(call, this.#config.forward), call));
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (this.#stopping.signal.aborted) throw stopped(this.#entry);
      if (connection.transport.ending() !== undefined) throw callLost(this.#entry, error);
      if (error instanceof RangeError) throw notSendable(error);
      throw callRefused(this.#entry, connection.transport.redact(wordsOf(error)), error);
    }
  }

  /** A signal that is aborted when the time for an attempt is over, until it is lifted, and when the entry stops. */
  #limit(outer: AbortSignal = this.#stopping.signal): { readonly signal: AbortSignal; lift(): void } {
    const late = new AbortController();
    const timer = this.#clock.after(ATTEMPT_LIMIT, () => late.abort(new Error(`no answer for ${ATTEMPT_LIMIT / 1000} s`)));
    return { signal: AbortSignal.any([late.signal, this.#stopping.signal, outer]), lift: () => timer.cancel() };
  }
}
