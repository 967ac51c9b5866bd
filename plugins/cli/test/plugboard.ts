import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';

const BIN = join(import.meta.dirname, '../bin/plugboard.js');

interface RunOptions {
  readonly cwd: string;
  readonly env?: Record<string, string>;
  readonly input?: string;
}

/** `plugboard` in a separate process: the built program, as its users run it. */
export class Plugboard {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;

  /**
   * @param options.input the standard input; by default it is empty
   * is absent.
   */
  constructor(t: Test, args: readonly string[], options: RunOptions) {
    const { PATH, NODE_OPTIONS } = process.env;
    // Only what it needs, and what the coverage is measured with.
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: options.cwd,
      env: { PATH, NODE_OPTIONS, ...options.env },
      stdio: 'pipe',
    });
    child.stdout.on('data', (data) => {
      this.stdout += data;
    });
    child.stderr.on('data', (data) => {
      this.stderr += data;
    });
    child.stdin.end(options.input);
    this.#closed = once(child, 'close');
    this.#child = child;
    t.teardown(() => child.kill('SIGKILL'));
  }

  /** Waits until standard output holds the text. Fails where the program ends before. */
  async prints(text: string): Promise<void> {
    while (!this.stdout.includes(text)) await this.#more('stdout');
  }

  /** Waits until there is a log line of that message, and gives its fields. */
  async logs(msg: string): Promise<Record<string, unknown>> {
    for (;;) {
      const line = this.log.find((fields) => String(fields.msg).includes(msg));
      if (line !== undefined) return line;
      await this.#more('stderr');
    }
  }

  /** The whole lines of the log. */
  get log(): Record<string, unknown>[] {
    const lines = this.stderr.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The exit code. */
  async exit(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }

  async #more(stream: 'stdout' | 'stderr'): Promise<void> {
    const ended = this.#closed.then(() => {
      throw new Error(`plugboard ended with ${this.#child.exitCode}: ${this.stdout}${this.stderr}`);
    });
    await Promise.race([once(this.#child[stream] ?? this.#child, 'data'), ended]);
  }
}

/** Runs a command to its end. */
export async function run(t: Test, args: readonly string[], options: RunOptions) {
  const program = new Plugboard(t, args, options);
  const code = await program.exit();
  return { code, stdout: program.stdout, stderr: program.stderr };
}

/** A plugin in one file. `body` is that of its `register`. */
export function plugin(name: string, body = '', properties = '{}'): string {
  return `
    import { createServer } from 'node:http';
    import * as kernel from '@plugboard/kernel';
    import * as contracts from '@plugboard/kernel/contracts';
    const { AuthProviders, defineExtensionPoint, definePlugin, ModelConnectors, Transports } = kernel;
    const routes = defineExtensionPoint('test.routes', { discipline: 'in-order', describe: (route) => [route] });
    export default definePlugin({
      name: '${name}',
      apiVersion: 1,
      summary: 'A plugin of a test',
      configSchema: { type: 'object', properties: ${properties} },
      register(ctx) { ${body} },
    });
  `;
}

/**
 * A distribution with an agent, a model, and a transport that listens for real and answers with the
 * phase of the server.
 */
export const distribution: Readonly<Record<string, string>> = {
  'plugboard.yaml': [
    'transports: { web: { use: ./web.js } }',
    `models: { fast: { use: ./model.js }, gone: { use: ./model.js, optional: true, key: "\${GONE}" } }`,
    'agents: { assistant: { model: [fast, gone] }, other: { model: fast } }',
  ].join('\n'),
  'web.js': plugin(
    'web',
    `
      const server = createServer((_, response) => response.end(ctx.host.phase));
      let address;
      ctx.extensions(routes);
      ctx.contribute(Transports, { address: () => address });
      return {
        async start() {
          await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
          address = 'http://127.0.0.1:' + server.address().port;
        },
        stop: () => void server.close(),
      };
    `,
  ),
  'model.js': plugin(
    'model',
    'ctx.contribute(ModelConnectors, { model: "m", contextWindow: 1000, input: ["text"], supportsParam: () => false, stream: async function* () {}, describe: () => [{ kind: "detail", label: "provider", text: "none" }] }); ctx.contribute(routes, { kind: "route", label: "POST", text: "/v1/chat/completions" })',
    '{ key: { type: "string" } }',
  ),
};

/** The distribution with one entry more, served by a plugin with this `register`. */
export function distributionWith(body: string, options = '', section = 'plugins'): Record<string, string> {
  const yaml = `${distribution['plugboard.yaml']}\n${section}: { extra: { use: ./extra.js${options} } }\n`;
  return { ...distribution, 'plugboard.yaml': yaml, 'extra.js': plugin('extra', body) };
}
