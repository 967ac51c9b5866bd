import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';

const ROOT = join(import.meta.dirname, '../../..');
const BIN = join(ROOT, 'plugins/cli/bin/plugboard.js');
/** An agent with a tool, and a model server of the test. */
export const AGENTS = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
tools:
  clock: {}
agents:
  assistant: { model: fast, system: You are the assistant., tools: [clock] }
`;

/** A running `plugboard chat`. */
export class Chat {
  output = '';
  errors = '';
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;

  private constructor(t: Test, command: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(command, args, { cwd: ROOT, env: { ...process.env, NODE_NO_WARNINGS: '1', ...env }, stdio: 'pipe' });
    this.#child.stdout?.on('data', (data) => {
      this.output += data;
    });
    this.#child.stderr?.on('data', (data) => {
      this.errors += data;
    });
    this.#closed = once(this.#child, 'close');
    t.teardown(() => this.#child.kill('SIGKILL'));
  }

  /** With pipes. */
  static piped(t: Test, args: readonly string[], env: NodeJS.ProcessEnv = {}): Chat {
    return new Chat(t, process.execPath, [BIN, 'chat', ...args], env);
  }

  /** On a pseudo-terminal, as `script` makes one. */
  static onTerminal(t: Test, args: readonly string[], env: NodeJS.ProcessEnv = {}): Chat {
    const command = [process.execPath, BIN, 'chat', ...args].join(' ');
    const columns = 'stty cols 60'; // the terminal of `script` has no size of its own
    return new Chat(t, 'script', ['-qec', `${columns}; ${command}`, '/dev/null'], { TERM: 'xterm', NO_COLOR: '1', ...env });
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  end(): void {
    this.#child.stdin?.end();
  }

  /** Waits until the output has the text so many times. @throws Error if the program ends first. */
  async shows(text: string, times = 1): Promise<void> {
    const ended = this.#closed.then(() => {
      throw new Error(`the chat ended: ${this.output}${this.errors}`);
    });
    ended.catch(() => {});
    while (this.output.split(text).length <= times) await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), ended]);
  }

  /** The exit code. */
  async code(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }
}
