import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Test } from 'tap';

const BIN = join(import.meta.dirname, '../../plugins/cli/bin/plugboard.js');
const MODEL = join(import.meta.dirname, '../bench/model.mjs');
const COUNTERS = new URL('./counters.mjs', import.meta.url);
/**
 * Without the optimizing compilers a turn allocates the same bytes each time, on every machine:
 * they leave out objects of functions that ran often enough. The young generation holds all that
 * is allocated between two questions, so that nothing is collected meanwhile.
 */
const EXACT = ['--no-opt', '--no-maglev', '--expose-gc', '--min-semi-space-size=512', '--max-semi-space-size=512'];

/** Most rounds: on a busy machine some are dearer. */
const ROUNDS = 8;

/** What a turn of one kind takes. Bytes are those of the heap. */
export interface Cost {
  readonly bytes: number;
  readonly promises: number;
  readonly ticks: number;
  readonly timers: number;
  readonly controllers: number;
  readonly listeners: number;
  readonly writes: number;
  readonly lines: number;
}

function eachOf(cost: Cost, of: (name: keyof Cost, value: number) => number): Cost {
  const names = Object.keys(cost) as (keyof Cost)[];
  return Object.fromEntries(names.map((name) => [name, of(name, cost[name])])) as unknown as Cost;
}

/** A node of V8's sampling heap profiler. */
interface Sampled {
  readonly callFrame: { readonly url: string };
  readonly selfSize: number;
  readonly children: readonly Sampled[];
}

/** A server in a process of its own, and an instant model server, that counts what turns take. */
export class MeasuredServer {
  readonly #child: ChildProcess;
  readonly port: number;
  #lines = 0;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
    child.stderr?.on('data', (data) => {
      this.#lines += String(data).split('\n').length - 1;
    });
  }

  static async start(t: Test): Promise<MeasuredServer> {
    const model = fork(MODEL, { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    t.teardown(() => model.kill('SIGKILL'));
    const [{ port: modelPort }] = await once(model, 'message');
    const child = fork(BIN, ['start', '-c', join(import.meta.dirname, 'budgets.yaml')], {
      execArgv: [...EXACT, `--import=${COUNTERS}`],
      cwd: t.testdir(),
      env: {
        PATH: process.env.PATH,
        MODEL_PORT: String(modelPort),
        BUDGET_SESSIONS: join(t.testdirName, 'sessions.db'),
        NODE_V8_COVERAGE: '', // which allocates
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    let stdout = '';
    child.stdout?.on('data', (data) => {
      stdout += data;
    });
    const port = await eventually(() => /^ {2}address +http:\/\/\S+:(\d+)\n/m.exec(stdout)?.[1]);
    return new MeasuredServer(child, Number(port));
  }

  /**
   * Measures turns after the server has run some. Takes the lowest of a few rounds, because a busy
   * machine only adds: an answer comes in more pieces, or a timer of the server falls into a
   * round.
   *
   * @param run runs so many turns, one after the other.
   * @param isEnough whether a cost is so low that no further round is needed.
   * @returns undefined if the bytes cannot be counted, because V8 collected garbage each time.
   */
  async measure(
    run: (turns: number) => Promise<void>,
    turns: number,
    isEnough: (cost: Cost) => boolean,
  ): Promise<Cost | undefined> {
    let lowest: Cost | undefined;
    for (let round = 0; round < ROUNDS; round++) {
      await this.#ask('startAllocating');
      await run(turns);
      const { bytes, collections } = (await this.#ask('stopAllocating')) as { bytes: number; collections: number };
      if (collections > 0) continue;
      await this.#ask('startCounting');
      const before = this.#lines;
      await run(turns);
      const counts = (await this.#ask('stopCounting')) as Omit<Cost, 'bytes' | 'lines'>;
      await eventually(() => this.#lines - before >= turns);
      const cost = eachOf({ bytes, ...counts, lines: this.#lines - before }, (_, total) => Math.floor(total / turns));
      lowest = eachOf(cost, (name, value) => Math.min(value, lowest?.[name] ?? value));
      if (isEnough(lowest)) break;
    }
    return lowest;
  }

  /** Bytes of a turn by package, as V8 samples them: about right. */
  async bytesByPackage(run: (turns: number) => Promise<void>, turns: number): Promise<Readonly<Record<string, number>>> {
    await this.#ask('startSampling');
    await run(turns);
    const { head } = (await this.#ask('stopSampling')) as { head: Sampled };
    const sums: Record<string, number> = {};
    const add = ({ callFrame, selfSize, children }: Sampled, caller: string) => {
      const name = packageOf(callFrame.url) ?? caller;
      sums[name] = (sums[name] ?? 0) + selfSize / turns;
      for (const child of children) add(child, name);
    };
    add(head, 'node');
    const sorted = Object.entries(sums).toSorted(([, a], [, b]) => b - a);
    return Object.fromEntries(sorted.map(([name, size]) => [name, Math.round(size)]).filter(([, size]) => Number(size) >= 100));
  }

  async #ask(question: string): Promise<unknown> {
    this.#child.send(question);
    const [answer] = await once(this.#child, 'message');
    return answer;
  }
}

/** The package of a script. Undefined for a function of V8, which counts for its caller. */
function packageOf(url: string): string | undefined {
  if (url.startsWith('node:')) return 'node';
  const [, dependency] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
  return dependency ?? /\/(?:plugins\/)?([^/]+)\/(?:dist|src)\//.exec(url)?.[1];
}
