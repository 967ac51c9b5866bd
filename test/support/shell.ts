import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';

const BIN = join(import.meta.dirname, '../../node_modules/.bin');

/** A command that has ended. */
export interface Ended {
  readonly code: number | null;
  /** Standard output and standard error as a terminal would show them. */
  readonly output: string;
}

/** Commands as a reader of a page would type them, in one folder. Programs of packages are found as `npx` would find them. */
export class Shell {
  readonly #t: Test;
  readonly #options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv };

  /** @param env all that commands see of an environment, beside the PATH. */
  constructor(t: Test, cwd: string, env: Readonly<Record<string, string>> = {}) {
    this.#t = t;
    this.#options = { cwd, env: { PATH: `${BIN}:${process.env.PATH}`, ...env } };
  }

  /** Runs a command to its end. */
  async run(command: string): Promise<Ended> {
    const child = this.#spawn(command);
    let output = '';
    const hear = (data: Buffer) => {
      output += data;
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    await once(child, 'close');
    return { code: child.exitCode, output };
  }

  /** Starts a command that goes on until it is told to stop. */
  start(command: string): Running {
    return new Running(this.#spawn(`exec ${command}`));
  }

  #spawn(command: string): ChildProcess {
    const child = spawn('sh', ['-c', command.replaceAll('npx ', '')], { ...this.#options, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#t.teardown(() => child.kill('SIGKILL'));
    return child;
  }
}

/** A command that is running. */
export class Running {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#closed = once(child, 'close');
    child.stdout?.on('data', (data) => {
      this.stdout += data;
    });
    child.stderr?.on('data', (data) => {
      this.stderr += data;
    });
  }

  /** Waits until standard output holds what is looked for, and gives the first group of it. @throws Error where the command ends before. */
  async prints(wanted: RegExp): Promise<string> {
    for (;;) {
      const found = wanted.exec(this.stdout);
      if (found) return found[1] ?? found[0];
      const ended = this.#closed.then(() => {
        throw new Error(`it ended with ${this.#child.exitCode}: ${this.stdout}${this.stderr}`);
      });
      await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), ended]);
    }
  }

  /** Tells it to stop, and waits for its exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    await this.#closed;
    return this.#child.exitCode;
  }
}
