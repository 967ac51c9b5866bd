import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, ModelServer } from '@plugboard/testing';
import type { Test } from 'tap';
import { MODEL_KEY } from '../../support/test-server.js';

const BIN = join(import.meta.dirname, '../../../plugins/cli/bin/plugboard.js');
const MIB = 1024 * 1024;
/** Milliseconds of a tick of Linux, in which it counts processor time. */
const TICK = 10;

interface ServerProcessOptions {
  /**
   * The configuration. `${MODEL_URL}` and `${MODEL_KEY}` are those of the test's model server.
   */
  readonly yaml: string;
  /** More files beside `plugboard.yaml`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** The heap limit in MiB. */
  readonly heap?: number;
  /** The limit of open files. */
  readonly descriptors?: number;
  /**
   * Whether garbage is collected before each `status`, so that it shows live memory. `young` leaves
   * what has survived two collections of the young generation, dead or alive.
   */
  readonly collectsGarbage?: boolean | 'young';
  /**
   * Where standard error goes: a shell redirection such as `2>/dev/full`. By default the test reads
   * it.
   */
  readonly stderr?: string;
}

/**
 * The options of Node with which a server collects garbage before each `status`.
 *
 * @param how calls of `gc`.
 */
const collecting = (how: string) => `--expose-gc --import=data:text/javascript,process.on(\`SIGUSR2\`,()=>{${how}})`;
const COLLECT_ALL = collecting('gc();gc()');
const COLLECT_YOUNG = collecting('gc({type:`minor`});gc({type:`minor`})');

/** A budget of the server, in the line `status` of its log. */
export interface BudgetStatus {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
  readonly peak: number;
  readonly refused: number;
}

/** What the server says of itself on SIGUSR2. */
export interface Status {
  /** Bytes. */
  readonly memory: { readonly heap_used: number; readonly external: number };
  readonly limits: readonly BudgetStatus[];
}

/**
 * A whole server in a separate process, as its users run it, with a scripted model server in the
 * process of the test.
 */
export class ServerProcess {
  stdout = '';
  stderr = '';
  readonly models: ModelServer;
  /** The folder of the configuration. */
  readonly folder: string;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #port = 0;

  private constructor(child: ChildProcess, models: ModelServer, folder: string) {
    this.folder = folder;
    this.models = models;
    this.#child = child;
    this.#closed = once(child, 'close');
    child.stdout?.on('data', (data) => {
      this.stdout += data;
    });
    child.stderr?.on('data', (data) => {
      this.stderr += data;
    });
  }

  /** Starts a server and waits until it listens. */
  static async start(t: Test, options: ServerProcessOptions): Promise<ServerProcess> {
    const models = await ModelServer.start();
    t.teardown(() => models.close());
    const folder = t.testdir();
    for (const [name, text] of Object.entries({ 'plugboard.yaml': options.yaml, ...options.files })) {
      writeFileSync(join(folder, name), text);
    }
    const { heap, descriptors, collectsGarbage, stderr = '' } = options;
    const command = [
      descriptors === undefined ? '' : `ulimit -n ${descriptors};`,
      `exec "${process.execPath}"`,
      heap === undefined ? '' : `--max-old-space-size=${heap}`,
      `"${BIN}" start ${stderr}`,
    ];
    const child = spawn('bash', ['-c', command.join(' ')], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        MODEL_URL: models.url,
        MODEL_KEY,
        NODE_V8_COVERAGE: '', // it would be slower, and take more memory
        NODE_OPTIONS: collectsGarbage === 'young' ? COLLECT_YOUNG : collectsGarbage ? COLLECT_ALL : '',
        ...options.env,
      }, // not what the test itself was started with
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const server = new ServerProcess(child, models, folder);
    await eventually(() => {
      if (!server.running) throw new Error(`the server ended with ${child.exitCode}: ${server.stdout}${server.stderr}`);
      const [, port] = /^ {2}address +http:\/\/\S+:(\d+)$/m.exec(server.stdout) ?? [];
      server.#port = Number(port ?? 0);
      return server.#port > 0;
    });
    return server;
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Its output streams, for a test that stops reading them or closes them. */
  get child(): ChildProcess {
    return this.#child;
  }

  /** The complete lines of the log. */
  get log(): readonly Record<string, unknown>[] {
    return this.stderr
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  }

  /** Waits for a log line with this message. */
  logs(msg: string): Promise<Record<string, unknown>> {
    return eventually(() => this.log.find((line) => String(line.msg).includes(msg)));
  }

  /** What it says of itself now. */
  async status(): Promise<Status> {
    const before = this.log.length;
    this.kill('SIGUSR2');
    return (await eventually(() => this.log.slice(before).find(({ msg }) => msg === 'status'))) as unknown as Status;
  }

  /** Bytes of live heap and of buffers outside of it. Needs `collectsGarbage`. */
  async liveHeap(): Promise<number> {
    const { memory } = await this.status();
    return memory.heap_used + memory.external;
  }

  /** Resident memory now, in MiB. */
  memory(): number {
    return this.#status('VmRSS');
  }

  /** The peak of resident memory, in MiB. */
  peakMemory(): number {
    return this.#status('VmHWM');
  }

  /** Milliseconds of a processor that it has used, which a busy machine does not change. */
  processorTime(): number {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'utf8');
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13);
    return (Number(user) + Number(system)) * TICK;
  }

  /** Sends a request. Retries nothing. */
  async request(path: string, init: RequestInit = {}): Promise<{ status: number; headers: Headers; text: string }> {
    const response = await fetch(this.url + path, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  /** Whether `/health` answers 200. */
  async isHealthy(): Promise<boolean> {
    const { status } = await this.request('/health');
    return status === 200;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits for the end of the process. @returns the exit code; null if a signal ended it. */
  async exit(): Promise<number | null> {
    if (this.running) await once(this.#child, 'exit');
    return this.#child.exitCode;
  }

  /** Waits until its output is read to the end, too. */
  async closed(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }

  #status(field: string): number {
    const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${this.pid}/status`, 'utf8')) ?? [];
    return (Number(kib) * 1024) / MIB;
  }
}
