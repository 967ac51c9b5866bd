import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CommandAction, Commands } from '@plugboard/kernel/contracts';
import { eventually, type StartServerOptions } from '@plugboard/testing';
import type { Test } from 'tap';
import { readRecording } from '../../plugins/plugin-record/src/format/read-recording.js';
import type { Recording } from '../../plugins/plugin-record/src/format/recording.js';
import type { Change } from '../../plugins/plugin-record/src/replay/compare.js';
import { TestServer, TRANSPORTS } from '../support/test-server.js';

/** Tools that read and write, fail and hang, and one whose parameters a test changes. */
const DESK = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'desk', apiVersion: 1, summary: 'A desk', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      let calls = 0;
      const inputSchema = { type: 'object', properties: { ticket: { type: 'integer', description: 'Its number.' } } };
      const tool = (name, effect, run) => ({ name, effect, description: name + ' a ticket', inputSchema, run });
      const tools = [
        tool('look', 'read', ({ ticket }) => 'ticket ' + ticket + ', look ' + ++calls),
        tool('close', 'write', ({ ticket }) => 'closed ' + ticket + ' in call ' + ++calls),
        tool('fail', 'write', () => { throw new Error('the desk is on fire'); }),
        tool('hang', 'write', (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))),
        tool('photo', 'read', () => ({ content: [{ type: 'text', text: 'a photo' }, { type: 'image', mimeType: 'image/png', data: 'aGk=' }] })),
      ];
      ctx.contribute(ToolSources, { tools: () => tools });
    },
  });
`;

/** The configuration of these tests, as text in which a test changes something. */
export const CONFIG = `${TRANSPORTS}  responses: {}
  messages: {}
  websocket: {}
  conversations: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}", input: [text, image] }
  other: { use: openai, baseUrl: "\${MODEL_URL}", model: small-1, apiKey: "\${MODEL_KEY}" }
tools: { desk: { use: ./desk.mjs } }
agents:
  assistant:
    model: [fast, other]
    system: You are the careful assistant.
    tools: [desk]
    params: { temperature: 0.2 }
  ops: { model: fast, system: You close tickets., tools: [desk/close, desk/look], approve: write }
defaultAgent: assistant
plugins: { record: {} }
`;

/** Nothing listens there: a replay asks no model. */
const OFFLINE = { MODEL_URL: 'http://127.0.0.1:9/v1', MODEL_KEY: 'no-key-0123456789' };

export interface Result {
  readonly code: number;
  readonly output: string;
  readonly notes: string;
}

export interface ReplayJson {
  readonly turn: string;
  readonly agent: string;
  readonly changed: boolean;
  readonly changes: readonly Change[];
}

export interface RehearsalJson {
  readonly turns: number;
  readonly same: number;
  readonly changed: number;
  readonly failed: number;
  readonly kinds: Readonly<Record<string, number>>;
  readonly cost: { readonly currency: string; readonly before: string | null; readonly after: string | null } | null;
  readonly changes: readonly {
    readonly file: string;
    readonly turn: string;
    readonly agent: string;
    readonly changes: readonly Change[];
  }[];
  readonly failures: readonly { readonly file: string; readonly reason: string }[];
}

/** A server whose turns are recorded, and the commands of its plugin. */
export class RecordedServer {
  readonly app: TestServer;
  readonly folder: string;
  readonly #config: string;
  readonly #env: StartServerOptions['env'];

  private constructor(app: TestServer, config: string, env: StartServerOptions['env']) {
    this.app = app;
    this.#env = env;
    this.folder = join(app.started.folder, 'data/recordings');
    this.#config = config;
  }

  static async start(t: Test, config = CONFIG, options: StartServerOptions = {}): Promise<RecordedServer> {
    const app = await TestServer.start(t, config, { ...options, files: { 'desk.mjs': DESK, ...options.files } });
    return new RecordedServer(app, config, options.env);
  }

  /** The names of the recordings, the oldest first, once there are so many. */
  async files(count: number): Promise<readonly string[]> {
    return eventually(async () => {
      const names = (await readdir(this.folder)).filter((name) => name.endsWith('.jsonl')).sort();
      return names.length >= count && names;
    });
  }

  async recordings(count: number): Promise<readonly Recording[]> {
    const names = await this.files(count);
    return Promise.all(names.map(async (name) => readRecording(await readFile(join(this.folder, name), 'utf8'))));
  }

  /** Runs a command with the configuration, changed by `change`. */
  async run(name: 'replay' | 'rehearse', words: readonly string[] = [], change = SAME): Promise<Result> {
    const against = join(this.app.started.folder, 'other.yaml');
    const literal = Object.entries({ ...this.#env, ...OFFLINE }).reduce(
      (text, [key, value]) => text.replaceAll(`\${${key}}`, value),
      this.#config,
    );
    const changed = change(literal);
    if (changed === literal && change !== SAME) throw new Error('the configuration is not changed');
    await writeFile(against, changed);
    const config = join(this.app.started.folder, 'literal.yaml');
    await writeFile(config, literal);
    return runCommand(this.#command(name), [...words, '--against', against, '--config', config]);
  }

  async rehearse(
    change?: (config: string) => string,
    words: readonly string[] = [],
  ): Promise<RehearsalJson & { readonly code: number }> {
    const { code, output, notes } = await this.run('rehearse', ['--json', ...words], change);
    if (output === '') throw new Error(notes);
    return { code, ...(JSON.parse(output) as RehearsalJson) };
  }

  #command(name: string): CommandAction {
    const found = this.app.started.server
      .extensions(Commands)
      .all()
      .find((one) => one.name === name);
    if (!found || 'actions' in found.value) throw new Error(`no command ${name}`);
    return found.value;
  }
}

const SAME = (config: string) => config;

/** Runs a command as the program does, with these words of a command line. */
async function runCommand(command: CommandAction, words: readonly string[]): Promise<Result> {
  const options: CommandAction['options'] = { ...command.options, config: { value: 'FILE', description: 'of every command' } };
  const isSwitch = (name: string) => options[name]?.value === undefined;
  const positionals: string[] = [];
  const given = new Map<string, string | undefined>();
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as string;
    if (!word.startsWith('--')) positionals.push(word);
    else given.set(word.slice(2), isSwitch(word.slice(2)) ? undefined : words[++index]);
  }
  const printed: string[] = [];
  const notes: string[] = [];
  const code = await command.run(
    { positionals, text: (option) => given.get(option), has: (option) => given.has(option) },
    { input: (async function* () {})(), print: (text) => printed.push(text), note: (text) => notes.push(text) },
  );
  return { code, output: printed.join('\n'), notes: notes.join('\n') };
}
