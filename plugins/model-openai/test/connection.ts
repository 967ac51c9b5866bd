import { setImmediate } from 'node:timers/promises';
import { ModelConnectors, type ModelError, type ModelEvent, type ModelRequest } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { ManualClock, ModelServer, modelRequest, SequentialIds, testContext } from '@plugboard/testing';
import type { Test } from 'tap';
import plugin from '../src/index.js';

/** A request for an answer that is not streamed. */
export const WHOLE: Partial<ModelRequest> = { incremental: false };

export const CLOCK: ToolDeclaration = { name: 'clock', description: 'Tells the time.', inputSchema: { type: 'object' } };

export const STOP: ModelEvent = { type: 'end', reason: 'stop' };

export function textEvent(text: string): ModelEvent {
  return { type: 'text', text };
}

/** A connection with these options and a manual clock. */
export function connect(t: Test, options: Readonly<Record<string, unknown>>) {
  const clock = new ManualClock();
  const context = testContext(plugin, {
    config: { model: 'gpt-test', apiKey: 'sk-very-secret', ...options },
    entry: 'models.fast',
    clock,
    ids: new SequentialIds(),
  });
  t.teardown(() => context.lifecycle.stop?.(new AbortController().signal));
  return { clock, connector: context.contributed(ModelConnectors, 'fast'), context };
}

/** A scripted model server and a connection to it. */
export async function open(t: Test, options: Readonly<Record<string, unknown>> = {}) {
  const server = await ModelServer.start();
  t.teardown(() => server.close());
  return { server, ...connect(t, { baseUrl: server.url, ...options }) };
}

type Connection = ReturnType<typeof connect>;

/** All batches of an answer. Text events are plain objects with decoded text. */
export async function read(
  { connector }: Pick<Connection, 'connector'>,
  request: Partial<ModelRequest> = {},
  signal?: AbortSignal,
) {
  const batches: ModelEvent[][] = [];
  for await (const batch of connector.stream(modelRequest('Hi', request), signal ?? new AbortController().signal)) {
    batches.push(batch.map(plain));
  }
  return batches;
}

export async function readAll(
  connection: Pick<Connection, 'connector'>,
  request: Partial<ModelRequest> = {},
): Promise<ModelEvent[]> {
  return (await read(connection, request)).flat();
}

/** The error that ends an answer, and the text before it. */
export async function readError({ connector }: Pick<Connection, 'connector'>, request: Partial<ModelRequest> = {}) {
  let text = '';
  try {
    for await (const batch of connector.stream(modelRequest('Hi', request), new AbortController().signal)) {
      for (const event of batch) if (event.type === 'text') text += event.text;
    }
  } catch (error) {
    const { name, message, code, retryable, retryAfter, isRequestFault, cause } = error as ModelError;
    return { name, message, code, retryable, retryAfter, isRequestFault, cause, text };
  }
  throw new Error(`there was no error, but the text "${text}"`);
}

/**
 * Runs the event loop a few times, so that data written to a local socket is read by the other
 * side.
 */
export async function runEventLoop(count = 10): Promise<void> {
  for (let i = 0; i < count; i++) await setImmediate();
}

/** Pieces that arrive in separate reads of the socket. */
export function* pausing<T>(...pieces: readonly T[]): Generator<T | Promise<void>> {
  for (const piece of pieces) {
    yield piece;
    yield runEventLoop();
  }
}

/** An event with decoded text and without what it carries for later requests. */
export function plain(event: ModelEvent): ModelEvent {
  if (event.type === 'text') return { type: 'text', text: event.text, ...(event.isRefusal && { isRefusal: true }) };
  if (event.type !== 'tool-call' && event.type !== 'end') return event;
  const { extra, ...rest } = event;
  return rest;
}
