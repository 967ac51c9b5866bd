import type { Message } from '@plugboard/kernel';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import { gatedModel, senderFor, startRuntime, type TestRuntimeOptions } from '../../harness.js';
import { SharedMemory } from './shared-memory.js';

export const ID = { project: 'default', agent: 'assistant', key: 's' };

/** Two servers over one store, with a model that answers when the test says so. */
export async function twoServers(options: Partial<TestRuntimeOptions> = {}) {
  const clock = new ManualClock();
  const memory = new SharedMemory(clock);
  const ids = new SequentialIds(); // no two turns have one
  const { model, call } = gatedModel();
  const start = async () => {
    const server = memory.server();
    const app = await startRuntime({ clock, ids, models: { fast: model }, ...options, store: server.store });
    return { ...app, server, send: senderFor(app) };
  };
  return { memory, clock, model, call, start, one: await start(), two: await start() };
}

/** What a session holds: each question with its answer. */
export async function stored(memory: SharedMemory): Promise<readonly string[]> {
  const { messages } = await memory.store.load(ID);
  return messages.map(({ content }: Message) => String(content));
}

/** Waits until so many turns are in line. */
export async function inLine(memory: SharedMemory, count: number): Promise<void> {
  while (memory.rows.length !== count) await memory.change();
}
