import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { type Clock, createRedactor, type Logger } from '@plugboard/kernel';
import { cannotRun } from './errors.js';
import { environmentOf, type Launch } from './launch.js';
import { LineSplitter } from './line-splitter.js';
import type { McpTransport } from './mcp-transport.js';
import { messageIn } from './message-in.js';
import { endAtExit, forget, OWN_GROUP, signalGroup } from './process-group.js';

/** Bytes of one message. A tool may answer with a large file; the runtime shortens what the model is told. */
const LONGEST_MESSAGE = 128 * 1024 * 1024;
/** Bytes of one line that is only for people. */
const LONGEST_LINE = 2048;
/** How many lines are kept for the error that tells of the end. */
const LINES_KEPT = 10;
/** Lines on standard output before the first message: with more the program is given up. It is no MCP server, and would keep us busy. */
const MOST_NOISE = 1000;
/** Milliseconds that a child has to end after the end of its input, and after SIGTERM; and that its pipes may stay open after its end. */
const GRACE = { endOfInput: 1000, terminate: 2000, pipes: 1000 };

/** Shorter values of `env`, such as `1` or `true`, are not secrets. */
const MIN_SECRET = 6;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * An MCP server that runs as a child and speaks over its standard input and output, one JSON message on each line ("stdio" in MCP's
 * specification). The SDK's own transport for this keeps the exit code to itself and leaves grandchildren behind.
 */
export class ChildProcessTransport implements McpTransport {
  onmessage?: (message: JSONRPCMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  readonly peer: string;
  readonly redact: McpTransport['redact'];
  readonly #launch: Launch;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #ended = Promise.withResolvers<void>();
  readonly #lastLines: string[] = [];
  #child: Child | undefined;
  #closing: Promise<void> | undefined;
  #ending: string | undefined;
  /** What the child did that made us give it up. */
  #fault: string | undefined;
  /** The child did not end by itself. */
  #forced = false;
  /** Whether a message has come, and how many lines that were none. */
  #spoken = false;
  #noise = 0;
  #delivered: Promise<void> = Promise.resolve();

  constructor(launch: Launch, clock: Clock, log: Logger) {
    this.peer = `"${launch.command}"`;
    this.redact = createRedactor({ values: Object.values(launch.env), minLength: MIN_SECRET });
    this.#launch = launch;
    this.#clock = clock;
    this.#log = log;
  }

  /** @throws where the program cannot be run; `ending` then says why. */
  async start(): Promise<void> {
    const { command, args, cwd } = this.#launch;
    try {
      const child = spawn(command, args, {
        cwd,
        env: environmentOf(this.#launch),
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: OWN_GROUP,
        windowsHide: true,
      });
      this.#child = child;
      this.#listen(child);
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve);
        child.once('error', reject);
      });
    } catch (error) {
      const why = this.redact(cannotRun(this.#launch, error as NodeJS.ErrnoException));
      this.#end(why);
      throw new Error(why);
    }
  }

  /** @throws where the message cannot be written: as JSON at once, to the child only after it has ended, so that `ending` can be asked. */
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

  /** The end of its input tells the child to go; then SIGTERM does; then it is ended. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  ending(): string | undefined {
    return this.#ending;
  }

  lastLines(): readonly string[] {
    return this.#lastLines;
  }

  #listen(child: Child): void {
    const messages = new LineSplitter(LONGEST_MESSAGE, (line, cut) => this.#receive(line, cut));
    child.stdout.on('data', (chunk: Buffer) => messages.push(chunk));
    child.stdout.once('end', () => {
      messages.end();
      void this.close(); // it will never answer again, so it is over, whether or not the child has ended
    });
    const complaints = new LineSplitter(LONGEST_LINE, (line) => this.#print(line, 'stderr'));
    child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk));
    child.stderr.once('end', () => complaints.end());
    child.stdin.on('error', () => void this.close()); // nobody reads it any more
    child.on('error', (error) => this.onerror?.(error));

    child.once('spawn', () => endAtExit(child));
    child.once('exit', () => {
      forget(child);
      this.#signal(child, 'SIGKILL'); // what it started and left behind
      // A grandchild that has moved to another group may hold the pipes open, and would hide the end.
      const timer = this.#clock.after(GRACE.pipes, () => {
        child.stdout.destroy();
        child.stderr.destroy();
      });
      child.once('close', () => timer.cancel());
    });
    child.once('close', (code, signal) => this.#end(this.#describe(code, signal)));
  }

  #receive(line: string, cut: boolean): void {
    const message = cut ? undefined : messageIn(line);
    if (message) {
      this.#spoken = true;
      this.#deliver(message);
    } else if (cut) {
      this.#giveUp(`sent a message of more than ${LONGEST_MESSAGE / 1024 / 1024} MiB`);
    } else {
      this.#print(line.slice(0, LONGEST_LINE), 'stdout');
      this.#noise += 1;
      if (this.#noise > MOST_NOISE && !this.#spoken) this.#giveUp('prints other things than MCP messages on its standard output');
    }
  }

  /**
   * One after the other, each in its own turn: the SDK sees to a notification a moment later, and if it were given the call's answer in that
   * moment, it would have forgotten whose progress the notification tells of.
   */
  #deliver(message: JSONRPCMessage): void {
    this.#delivered = this.#delivered.then(() => this.onmessage?.(message)).catch((error) => this.onerror?.(error));
  }

  #giveUp(fault: string): void {
    this.#fault ??= fault;
    this.#child?.stdout.destroy(); // no more of it
    void this.close();
  }

  /** A line for people, whichever way it came. */
  #print(printed: string, from: 'stdout' | 'stderr'): void {
    const line = this.redact(stripVTControlCharacters(printed).trimEnd());
    if (line === '') return;
    this.#lastLines.push(line);
    if (this.#lastLines.length > LINES_KEPT) this.#lastLines.shift();
    this.#log.debug({ line, from }, 'the MCP server prints');
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
    if (!signalGroup(child, signal)) this.#log.warn(`${this.peer} may not be sent ${signal}: it runs as another user`);
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
    if (this.#forced) return `${this.peer} closed its standard input or output and went on running`;
    return signal ? `${this.peer} was ended by ${signal}` : `${this.peer} exited with code ${code}`;
  }

  #end(how: string): void {
    if (this.#ending !== undefined) return;
    this.#ending = how;
    this.#ended.resolve();
    this.onclose?.();
  }
}
