import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';

const BIN = join(import.meta.dirname, '../../node_modules/.bin');

/** The result of a command. */
interface Ended {
  readonly code: number | null;
  /** Standard output and standard error, interleaved. */
  readonly output: string;
}

/** Runs commands of a page in one folder. Finds the programs of packages as `npx` does. */
export class Shell {
  readonly #t: Test;
  readonly #options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv };

  /** @param env the whole environment of the commands, except PATH. */
  constructor(t: Test, cwd: string, env: NodeJS.ProcessEnv = {}) {
    this.#t = t;
    this.#options = { cwd, env: { PATH: `${BIN}:${process.env.PATH}`, ...env } };
  }

  /** Runs a command and waits for its end. */
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

  /** Starts a command that runs until it is stopped. */
  start(command: string): Running {
    return new Running(this.#spawn(`exec ${command}`));
  }

  #spawn(command: string): ChildProcess {
    const child = spawn('sh', ['-c', command.replaceAll('npx ', '')], { ...this.#options, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#t.teardown(() => child.kill('SIGKILL'));
    return child;
  }
}

/** A running command. */
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

  /**
   * Waits until standard output matches, and returns the first group of the match.
   * @throws Error if the command ends first.
   */
  async prints(wanted: RegExp): Promise<string> {
    for (;;) {
      const found = wanted.exec(this.stdout);
      if (found) return found[1] ?? found[0];
      const ended = this.#closed.then(() => {
        throw new Error(`the command exited with ${this.#child.exitCode}: ${this.stdout}${this.stderr}`);
      });
      await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), ended]);
    }
  }

  /** Sends SIGTERM and waits for the exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    await this.#closed;
    return this.#child.exitCode;
  }
}
