import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { Clock, Logger } from '@plugboard/kernel';
import type { Account } from '@plugboard/kernel/contracts';
import { errorForCut, messageIn, messageLimit } from '../protocol/message-in.js';
import { cannotRun } from './cannot-run.js';
import { environmentOf } from './environment.js';
import { type Launch, limitedCommand } from './launch.js';
import { type CutLine, LineSplitter } from './line-splitter.js';
import { endAtExit, forget, OWN_GROUP, signalGroup } from './process-group.js';
import { readSlowly } from './rate-limit.js';
import { readLines } from './read-lines.js';
import { redactorOf } from './secrets.js';

/** Bytes kept of one line of output that is not a message. */
const MAX_LINE_BYTES = 2048;
/** Number of last lines kept for the error that reports the end. */
const LAST_LINES = 10;
/** Bytes read from standard error per second. */
const MAX_STDERR_RATE = 256 * 1024;
/** Lines of output logged per second. */
const MAX_LOGGED_RATE = 100;
/** Lines before the first message beyond which the program is ended: no MCP server. */
const MAX_NOISE_LINES = 1000;
/**
 * Milliseconds that a server has to end after the end of its input, and after SIGTERM; and that its
 * pipes may stay open after its end.
 */
const GRACE = { endOfInput: 1000, terminate: 2000, pipes: 1000 };

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * An MCP server that runs as a child process and communicates over its standard input and output,
 * one JSON message per line (the "stdio" transport of the MCP specification). The SDK's own stdio
 * transport does not report the exit code, and leaves grandchildren behind.
 *
 * 1. It ends once: because the server ended, because this gave up, or because of `close`. `ending`
 *    then returns the reason, and `onclose` is called. One that could not be opened has ended too.
 * 2. `close` may be called at any time, repeatedly. It resolves when the server has ended.
 */
export class ChildProcessTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  /** The server's name in messages: `"npx"`. */
  readonly peer: string;
  /** Removes the secrets of the configuration from a text, because the server may repeat them. */
  readonly redact: (text: string) => string;
  readonly #launch: Launch;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The memory of what its messages hold. */
  readonly #account: Account;
  /** Bytes of a message: no more than the account may hold. */
  readonly #limit: number;
  readonly #ended = Promise.withResolvers<void>();
  readonly #lastLines: string[] = [];
  #child: Child | undefined;
  #closing: Promise<void> | undefined;
  #ending: string | undefined;
  /** Why this transport ended the server. */
  #fault: string | undefined;
  /** The server did not end by itself. */
  #forced = false;
  /** Whether a message has arrived, and the number of lines that were not messages. */
  #hasSpoken = false;
  #noise = 0;
  #delivered: Promise<void> = Promise.resolve();
  /** Lines logged in the current second, and lines left out since the last logged one. */
  #logged = { since: Number.NEGATIVE_INFINITY, count: 0, leftOut: 0 };

  constructor(launch: Launch, clock: Clock, log: Logger, account: Account) {
    this.peer = `"${launch.command}"`;
    this.redact = redactorOf(launch);
    this.#launch = launch;
    this.#clock = clock;
    this.#log = log;
    this.#account = account;
    this.#limit = messageLimit(account);
  }

  /** @throws Error if the program cannot be started; `ending` then returns the reason. */
  async start(): Promise<void> {
    const { cwd, user } = this.#launch;
    const { command, args } = limitedCommand(this.#launch);
    try {
      const child = spawn(command, args, {
        cwd,
        env: environmentOf(this.#launch),
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: OWN_GROUP,
        windowsHide: true,
        ...(user && { uid: user.uid, gid: user.gid }),
      });
      this.#child = child;
      this.#listen(child);
      await once(child, 'spawn');
    } catch (error) {
      const why = this.redact(cannotRun(this.#launch, error as NodeJS.ErrnoException));
      this.#end(why);
      throw new Error(why);
    }
  }

  /** @throws Error if the message is not JSON, or if the server has ended (`ending`). */
  async send(message: JSONRPCMessage): Promise<void> {
    const line = `${JSON.stringify(message)}\n`;
    const input = this.#child?.stdin;
    try {
      await new Promise<void>((resolve, reject) => {
        if (!input?.writable) throw new Error('closed');
        input.write(line, (error) => (error ? reject(error) : resolve()));
      });
    } catch {
      await this.close();
      throw new Error(this.#ending);
    }
  }

  /** Ends the server: closes its input, then sends SIGTERM, then SIGKILL. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Why it ended, as a clause: `"npx" exited with code 1`. Undefined while it is open. */
  ending(): string | undefined {
    return this.#ending;
  }

  /** The last lines the server printed, redacted. */
  lastLines(): readonly string[] {
    return this.#lastLines;
  }

  #listen(child: Child): void {
    const messages = new LineSplitter(this.#limit, (line, cut) => this.#receive(line, cut));
    readLines(child.stdout, messages, this.#account);
    child.stdout.once('end', () => {
      messages.end();
      void this.close(); // it can never answer again, whether or not the process has ended
    });
    const printed = new LineSplitter(MAX_LINE_BYTES, (line) => this.#print(line, 'stderr'));
    readSlowly(child.stderr, MAX_STDERR_RATE, this.#clock, (chunk) => printed.push(chunk));
    child.stderr.once('end', () => printed.end());
    child.stdin.on('error', () => void this.close()); // the server closed it
    child.on('error', (error) => this.onerror?.(error));

    child.once('spawn', () => endAtExit(child));
    child.once('exit', () => {
      forget(child);
      this.#signal(child, 'SIGKILL'); // processes that it left behind
      // A grandchild in another process group may hold the pipes open, and would hide the end.
      const timer = this.#clock.after(GRACE.pipes, () => {
        child.stdout.destroy();
        child.stderr.destroy();
      });
      child.once('close', () => timer.cancel());
    });
    child.once('close', (code, signal) => this.#end(this.#describe(code, signal)));
  }

  #receive(line: string, cut: CutLine | undefined): void {
    const message = cut ? errorForCut(cut.beginning, cut.end, this.#limit) : messageIn(line);
    if (message) {
      this.#hasSpoken = true;
      this.#deliver(message);
    } else if (cut) {
      this.#giveUp(`sent a message of more than ${this.#limit / 1024 / 1024} MiB`);
    } else {
      this.#print(line.slice(0, MAX_LINE_BYTES), 'stdout');
      this.#noise += 1;
      if (this.#noise > MAX_NOISE_LINES && !this.#hasSpoken)
        this.#giveUp('prints text that is not an MCP message on its standard output');
    }
  }

  /**
   * Delivers messages one at a time, each in a separate tick. The SDK handles a notification one
   * tick later. If it received the answer to the call before that, it would not find the call that
   * the notification belongs to.
   */
  #deliver(message: JSONRPCMessage): void {
    this.#delivered = this.#delivered.then(() => this.onmessage?.(message)).catch((error) => this.onerror?.(error));
  }

  #giveUp(fault: string): void {
    this.#fault ??= fault;
    this.#child?.stdout.destroy();
    void this.close();
  }

  /** Keeps and logs a line that is not a message. */
  #print(printed: string, from: 'stdout' | 'stderr'): void {
    const line = this.redact(stripVTControlCharacters(printed).trimEnd());
    if (line === '') return;
    this.#lastLines.push(line);
    if (this.#lastLines.length > LAST_LINES) this.#lastLines.shift();
    const now = this.#clock.monotonic();
    if (now - this.#logged.since >= 1_000) this.#logged = { ...this.#logged, since: now, count: 0 };
    if (this.#logged.count++ >= MAX_LOGGED_RATE) {
      this.#logged.leftOut++;
      return;
    }
    const { leftOut } = this.#logged;
    this.#logged.leftOut = 0;
    this.#log.debug({ line, from, left_out: leftOut === 0 ? undefined : leftOut }, 'the MCP server printed a line');
  }

  async #close(): Promise<void> {
    const child = this.#child;
    if (!child || this.#ending !== undefined) return;
    child.stdin.end();
    if (await this.#endsWithin(GRACE.endOfInput)) return;
    this.#forced = true;
    this.#signal(child, 'SIGTERM');
    if (await this.#endsWithin(GRACE.terminate)) return;
    this.#signal(child, 'SIGKILL');
    await this.#ended.promise;
  }

  #signal(child: Child, signal: NodeJS.Signals): void {
    if (!signalGroup(child, signal)) this.#log.warn(`${this.peer} cannot be sent ${signal}: it runs as another user`);
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const timer = this.#clock.after(ms, () => late.resolve(false));
    const ended = await Promise.race([this.#ended.promise.then(() => true), late.promise]);
    timer.cancel();
    return ended;
  }

  #describe(code: number | null, signal: NodeJS.Signals | null): string {
    if (this.#fault) return `${this.peer} ${this.#fault}`;
    if (this.#forced) return `${this.peer} closed its standard input or output and kept running`;
    return signal ? `${this.peer} was ended by ${signal}` : `${this.peer} exited with code ${code}`;
  }

  #end(reason: string): void {
    if (this.#ending !== undefined) return;
    this.#ending = reason;
    this.#ended.resolve();
    this.onclose?.();
  }
}
