import { audit, type Clock, type Lifecycle, type Logger, type Tool, type ToolCall, type ToolSource } from '@plugboard/kernel';
import type { Timer, ToolResultParts } from '@plugboard/kernel/contracts';
import type { ToolPin } from './accepted/tool-pin.js';
import type { McpConfig } from './config.js';
import type { Connect } from './connect.js';
import {
  AcceptedFileError,
  callLost,
  callRefused,
  McpServerError,
  messageOf,
  notReached,
  notRunning,
  notSendable,
  notStarted,
  stopped,
} from './errors/errors.js';
import type { ConnectionEvents, McpConnection } from './protocol/mcp-connection.js';
import { timeLimit } from './protocol/own-signal.js';
import { MAX_LIST, MAX_TOOLS, type ToolList } from './protocol/tool-list.js';
import { metaOf } from './tools/call-meta.js';
import { listedTools } from './tools/listed-tools.js';
import { digestsOf, toolChanges } from './tools/tool-changes.js';
import { toolResultOf } from './tools/tool-result.js';

/** Milliseconds before the first restart. Each that fails doubles it, up to the maximum. */
const FIRST_RESTART_DELAY = 1000;
const MAX_RESTART_DELAY = 30_000;
/** Milliseconds that a server must have run for the delay to start from the first one again. */
const STABLE_AFTER = 30_000;
/** Tools that were skipped of which each has a line in the log. */
const MAX_SKIPPED = 10;
/** Milliseconds for a start or restart, and for reading a changed list. */
const ATTEMPT_LIMIT = 10_000;
/** Milliseconds from a change of the list to reading it: servers report every single one. */
const CHANGES_SETTLE = 100;
/** Milliseconds from the reading of a changed list to the next one. */
const MIN_INTERVAL = 1000;

interface McpToolsOptions {
  readonly connect: Connect;
  /** Whether the server is a process of this entry, or runs elsewhere. */
  readonly runs: 'here' | 'elsewhere';
  /** A number from 0 to 1: spreads the attempts of many to reach one server. */
  readonly jitter: () => number;
  /** Holds back tools that were not accepted. */
  readonly pin?: ToolPin | undefined;
  /** Whether calls name the caller. */
  readonly forward: McpConfig['forward'];
  /** Whether the server acts once on calls with the same key. */
  readonly isKeyed: boolean;
  /** The name of the entry, for messages. */
  readonly entry: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The tools of one MCP server.
 *
 * 1. `start` opens the connection and reads the list of tools. It throws if either fails.
 * 2. When the server reports a change of its list, the list is read again.
 * 3. When the connection ends, calls fail with an error that says so, and the server is restarted
 *    after a delay. Its tools stay declared.
 * 4. `reload` looks at what the operator accepted.
 * 5. `stop` closes the connection, or ends the attempt to open one, and waits until the server has
 *    ended.
 */
export class McpTools implements ToolSource, Lifecycle {
  readonly single = false;
  /** Longer than the limit of this class, whose error contains the output of the server. */
  readonly startLimit = ATTEMPT_LIMIT + 1000;
  readonly #options: McpToolsOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  /** The tools that are offered: those of the list, or some of them. */
  #tools: readonly Tool[] = [];
  /** The list that was read last. */
  #listed: readonly Tool[] | undefined;
  #connection: McpConnection | undefined;
  /** Since when it is in use, on the monotonic clock. */
  #since = 0;
  /** The current attempt to open a connection, or the last one. */
  #attempt: Promise<void> | undefined;
  /** The end of the connection that could not be opened last. */
  #closing: Promise<void> | undefined;
  #restartDelay = FIRST_RESTART_DELAY;
  #restart: Timer | undefined;
  #change: Timer | undefined;
  /** When a changed list was read last, on the monotonic clock. */
  #lastRead = Number.NEGATIVE_INFINITY;
  /** Reads changed lists one after the other. */
  #readings: Promise<void> = Promise.resolve();

  constructor(options: McpToolsOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  tools(): readonly Tool[] {
    return this.#tools;
  }

  /** @throws McpServerError that names the program, the reason and its last output. */
  async start(signal: AbortSignal): Promise<void> {
    this.#attempt = this.#open(signal);
    await this.#attempt;
    this.#options.pin?.watch(() => this.#offer());
  }

  /** @throws AcceptedFileError */
  reload(): void {
    this.#offer();
  }

  /** While the server is away, it is restarted, and its tools stay declared. */
  health(): ReturnType<NonNullable<Lifecycle['health']>> {
    if (this.#connection) return { state: 'ok' };
    if (this.#options.runs === 'elsewhere')
      return { state: 'degraded', reason: 'the MCP server cannot be reached and is tried again' };
    return { state: 'degraded', reason: 'the MCP server has ended and is restarted; the log has its last lines' };
  }

  async stop(): Promise<void> {
    this.#stopping.abort(stopped(this.#options.entry));
    this.#restart?.cancel();
    this.#change?.cancel();
    this.#options.pin?.stop();
    await this.#attempt?.catch(() => {}); // reported where the attempt was made
    await this.#closing;
    await this.#connection?.close();
  }

  async #open(outer?: AbortSignal): Promise<void> {
    let hasChanged = false;
    const events: ConnectionEvents = {
      ended: () => this.#onEnd(connection),
      toolsChanged: () => {
        hasChanged = true;
        if (this.#connection === connection) this.#readSoon();
      },
      violation: (error) =>
        this.#log.debug(`the MCP server violated the protocol: ${connection.redact(error.message).slice(0, 500)}`),
    };
    const connection = this.#options.connect(events, this.#stopping.signal);
    const limit = this.#limit(outer);
    try {
      await connection.open(limit.signal);
      const list = await connection.list(limit.signal);
      if (connection.ending() !== undefined) throw new Error('it ended');
      this.#use(list);
    } catch (error) {
      // Before it is closed here.
      const reason = error instanceof AcceptedFileError ? error.message : connection.failure(error, limit.signal.aborted);
      this.#closing = connection.close();
      if (this.#stopping.signal.aborted) throw stopped(this.#options.entry);
      throw notStarted(connection.redact(reason), connection.lastLines());
    } finally {
      limit.cancel();
    }
    this.#connection = connection;
    if (hasChanged) this.#readSoon(); // the list may have been read before the change
    this.#since = this.#clock.monotonic();
    this.#log.info({ server: connection.server, tools: this.#tools.length }, 'the MCP server is ready');
  }

  #onEnd(connection: McpConnection): void {
    if (this.#connection !== connection) return; // it could not be opened, which `#open` reports
    this.#connection = undefined;
    if (this.#stopping.signal.aborted) return;
    const what = this.#options.runs === 'here' ? 'has ended' : 'is away';
    this.#log.warn({ lastLines: connection.lastLines() }, `the MCP server ${what}: ${connection.ending()}`);
    if (this.#clock.monotonic() - this.#since >= STABLE_AFTER) this.#restartDelay = FIRST_RESTART_DELAY;
    this.#scheduleRestart();
  }

  #scheduleRestart(): void {
    const jitter = this.#options.jitter();
    const delay = Math.min(this.#restartDelay * (1 + jitter), MAX_RESTART_DELAY * (1 - jitter / 5));
    this.#restart = this.#clock.after(delay, () => {
      this.#attempt = this.#reopen();
    });
    this.#restartDelay = Math.min(2 * this.#restartDelay, MAX_RESTART_DELAY);
  }

  async #reopen(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      await this.#closing;
      if (this.#stopping.signal.aborted) return;
      const what = this.#options.runs === 'here' ? 'restarted' : 'reached';
      this.#log.warn(`the MCP server could not be ${what}; will retry: ${messageOf(error)}`);
      this.#scheduleRestart();
    }
  }

  #readSoon(): void {
    // A list that changes without end is read once a second.
    const wait = Math.max(CHANGES_SETTLE, this.#lastRead + MIN_INTERVAL - this.#clock.monotonic());
    this.#change ??= this.#clock.after(wait, () => {
      this.#change = undefined;
      this.#readings = this.#readings.then(() => this.#readAgain());
    });
  }

  async #readAgain(): Promise<void> {
    const connection = this.#connection;
    if (!connection) return; // the next one reads the list when it is opened
    const limit = this.#limit();
    this.#lastRead = this.#clock.monotonic();
    try {
      this.#use(await connection.list(limit.signal));
      this.#log.info({ tools: this.#tools.length }, 'the MCP server has changed its tools');
    } catch (error) {
      if (this.#connection !== connection) return;
      this.#log.warn(`the changed list of tools could not be read; keeping the old one: ${connection.redact(messageOf(error))}`);
    } finally {
      limit.cancel();
    }
  }

  /** Offers the tools of a list, from the next turn on. */
  #use(list: ToolList): void {
    const before = this.#listed;
    this.#listed = this.#read(list);
    this.#offer();
    const changes = before && toolChanges(digestsOf(before), digestsOf(this.#listed));
    if (!changes) return;
    audit(this.#log, 'tools_changed', { entry: this.#options.entry, ...changes }, 'the tools of an MCP server changed');
  }

  #offer(): void {
    const listed = this.#listed ?? [];
    this.#tools = this.#options.pin?.offered(listed) ?? listed;
  }

  #read({ listed, isCut, faultOf }: ToolList): readonly Tool[] {
    let skipped = 0;
    const skip = (tool: string, reason: string) => {
      if (skipped++ < MAX_SKIPPED)
        this.#log.warn({ tool: tool.slice(0, 200) }, `a tool of the MCP server was skipped: ${reason}`);
    };
    const tools = listedTools(listed, skip, faultOf);
    if (skipped > MAX_SKIPPED) this.#log.warn(`${skipped - MAX_SKIPPED} more tools of the MCP server were skipped`);
    if (isCut) {
      const limits = `more than ${MAX_TOOLS} tools, or ${MAX_LIST / 2 ** 20} MiB of them`;
      this.#log.warn(
        { offered: tools.length },
        `the MCP server lists ${limits}; the rest were skipped. Have it offer fewer tools`,
      );
    }
    if (tools.length === 0) this.#log.warn('the MCP server offers no tools');
    const keyed = this.#options.isKeyed && { keyed: true };
    return tools.map((tool) => ({ ...tool, ...keyed, run: (input, call) => this.#call(tool.name, input, call) }));
  }

  async #call(name: string, input: Readonly<Record<string, unknown>>, call: ToolCall): Promise<ToolResultParts> {
    const connection = this.#connection;
    const { entry, forward, runs } = this.#options;
    if (!connection) {
      if (this.#stopping.signal.aborted) throw stopped(entry);
      throw runs === 'here' ? notRunning(entry) : notReached(entry);
    }
    try {
      return toolResultOf(await connection.call(name, input, metaOf(call, forward), call));
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (this.#stopping.signal.aborted) throw stopped(entry);
      if (error instanceof McpServerError) throw error;
      if (connection.ending() !== undefined && runs === 'here') throw callLost(entry, error);
      if (error instanceof RangeError) throw notSendable(error);
      throw callRefused(entry, connection.redact(messageOf(error)), error);
    }
  }

  /** A signal for an attempt: aborted at its time limit, if any, and when the entry stops. */
  #limit(outer: AbortSignal = this.#stopping.signal) {
    return timeLimit(this.#clock, ATTEMPT_LIMIT, `no answer for ${ATTEMPT_LIMIT / 1000} s`, this.#stopping.signal, outer);
  }
}
