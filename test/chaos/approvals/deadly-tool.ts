/**
 * Where a server can be killed: before or after an operation of its store, around a tool, or at any
 * time. An operation happens several times in a turn; `DIE_AFTER` says how many are let through.
 */
export const POINTS = [
  'after commit',
  'after approvals.replace',
  'in tool',
  'before tool',
  'any time',
  'before approvals.replace',
  'after tool',
  'before commit',
  'after begin',
  'after approvals.get',
  'before begin',
] as const;
export type Point = (typeof POINTS)[number];

/**
 * A plugin whose tools `write` and `read` note in `ran.txt` when a run begins and ends, and which
 * kills its own process at the point that the environment names.
 */
export const DEADLY_TOOL = `
  import { subscribe } from 'node:diagnostics_channel';
  import { appendFileSync } from 'node:fs';
  import { setTimeout as wait } from 'node:timers/promises';
  import { definePlugin, ToolSources } from '@plugboard/kernel';

  const { DIE_AT, DIE_AFTER, LIFE } = process.env;
  let left = Number(DIE_AFTER);
  const pass = (point) => {
    if (point === DIE_AT && left-- === 0) process.kill(process.pid, 'SIGKILL');
  };
  const note = (...words) => appendFileSync('ran.txt', words.join(' ') + '\\n');
  subscribe('tracing:plugboard.store:start', ({ operation }) => pass('before ' + operation));
  subscribe('tracing:plugboard.store:asyncEnd', ({ operation }) => pass('after ' + operation));

  const run = async ({ name, pause }, { turnId, index }) => {
    pass('before tool');
    note('begin', name, LIFE, turnId + '/' + index);
    pass('in tool');
    await wait(pause);
    note('end', name, LIFE, turnId + '/' + index);
    pass('after tool');
    return 'result of ' + name;
  };
  const inputSchema = {
    type: 'object',
    properties: { name: { type: 'string' }, pause: { type: 'number' } },
    required: ['name', 'pause'],
  };
  const tools = ['write', 'read'].map((effect) => ({ name: effect, description: effect, effect, inputSchema, run }));
  export default definePlugin({
    name: 'deadly', apiVersion: 1, summary: 'Runs, and dies', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => tools }),
  });
`;

/** A line of `ran.txt`. */
export interface RunEvent {
  readonly what: 'begin' | 'end';
  readonly name: string;
  /** Number of the process. */
  readonly life: string;
  /** The idempotency key of the call. */
  readonly key: string;
}

export function runEventsIn(text: string): readonly RunEvent[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [what, name = '', life = '', key = ''] = line.split(' ');
    return { what: what === 'end' ? 'end' : 'begin', name, life, key };
  });
}
