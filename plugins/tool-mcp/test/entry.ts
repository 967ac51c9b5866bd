import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Tool, type ToolCall, ToolSources } from '@plugboard/kernel';
import { type CommandFamily, Commands, type ToolResultParts } from '@plugboard/kernel/contracts';
import { eventually, type LogLine, ManualClock, testContext, testToolCall } from '@plugboard/testing';
import { pino } from 'pino';
import type { Test } from 'tap';
import plugin from '../src/index.js';

/** The folder of the configuration file, as the entries here see it. */
export const FOLDER = dirname(fileURLToPath(import.meta.url));

/** The options of an entry that runs the fixture with these arguments. */
export function fixture(...args: string[]) {
  return { command: process.execPath, args: ['fixtures/server.mjs', ...args] };
}

/** The options of an entry that runs the official file system server over a folder. */
export function filesystem(folder: string) {
  const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-filesystem/package.json');
  return { command: process.execPath, args: [resolve(dirname(manifest), 'dist/index.js'), folder] };
}

/**
 * An entry `tools.files` of the plugin, registered, with a clock that stands still. It is stopped
 * after the test.
 */
export function entry(t: Pick<Test, 'teardown'>, config: object, clock = new ManualClock()) {
  const journal = watchedLog();
  const watched: typeof plugin = {
    ...plugin,
    register: (given) => plugin.register({ ...given, log: journal.log }),
  };
  const { lifecycle, contributed } = testContext(watched, { config, entry: 'tools.files', clock, folder: FOLDER });
  const source = contributed(ToolSources);
  const { signal } = new AbortController();
  const stop = async () => lifecycle.stop?.(signal);
  t.teardown(stop);

  const tools = () => source.tools(signal) as readonly Tool[];
  const tool = (name: string): Tool => {
    const found = tools().find((tool) => tool.name === name);
    if (!found) throw new Error(`there is no tool ${name}`);
    return found;
  };
  const call = async (name: string, input: Record<string, unknown> = {}, overrides: Partial<ToolCall> = {}) =>
    (await tool(name).run(input, { ...testToolCall(), ...overrides })) as ToolResultParts;
  return {
    source,
    clock,
    ...journal,
    health: () => lifecycle.health?.(),
    start: async (startSignal = signal) => lifecycle.start?.(startSignal),
    reload: () => lifecycle.reload?.(signal),
    stop,
    /** Of an entry with `url`. */
    get command() {
      return contributed(Commands) as CommandFamily;
    },
    /** Runs `plugboard tools accept`. */
    async accept() {
      const output: string[] = [];
      const notes: string[] = [];
      const terminal = {
        input: (async function* () {})(),
        print: (text: string) => void output.push(text),
        note: (text: string) => void notes.push(text),
      };
      const args = { positionals: [], text: () => undefined, has: () => false };
      const code = await (contributed(Commands) as CommandFamily).actions.accept?.run(args, terminal);
      return { output, notes, code };
    },
    /** Moves the clock once something waits for it. */
    async advance(ms: number) {
      await eventually(() => clock.pending > 0);
      clock.advance(ms);
    },
    names: () => tools().map((tool) => tool.name),
    tool,
    call,
    /** The text of a result that is one text. */
    text: async (...args: Parameters<typeof call>): Promise<string> => {
      const { content } = await call(...args);
      const [part] = content;
      if (content.length !== 1 || part?.type !== 'text') throw new Error(`no single text: ${JSON.stringify(content)}`);
      return part.text;
    },
  };
}

export type Entry = ReturnType<typeof entry>;

/** A real logger whose lines can be waited for. */
function watchedLog() {
  const lines: LogLine[] = [];
  const waiting = new Set<() => void>();
  let seen = 0;
  const write = (json: string) => {
    lines.push(JSON.parse(json));
    for (const look of waiting) look();
  };
  return {
    log: pino({ level: 'trace', formatters: { level: (level) => ({ level }) } }, { write }),
    lines: lines as readonly LogLine[],
    /** The next line, after the last that was waited for, whose JSON has the pattern. */
    logged: (pattern: RegExp) =>
      new Promise<LogLine>((resolve) => {
        const look = () => {
          const at = lines.findIndex((line, index) => index >= seen && pattern.test(JSON.stringify(line)));
          const found = lines[at];
          if (!found) return;
          seen = at + 1;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}
