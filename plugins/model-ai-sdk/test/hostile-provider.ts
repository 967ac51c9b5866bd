/** Providers that send more than an answer may hold, and what must become of it (S-75). */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip } from 'node:zlib';
import { Account } from '@plugboard/kernel/contracts';
import type { Test } from 'tap';
import { turnWith as turnOf } from '../../../test/support/turn-with.js';
import { CLOCK, connect, PROVIDERS, type ProviderName, readError } from './connection.js';

export const MIB = 2 ** 20;

/** A provider that answers each request with what `answer` writes. Counts open answers. */
export async function hostile(t: Test, name: ProviderName, answer: (response: ServerResponse) => Promise<void>) {
  const state = { open: 0, written: 0 };
  const http = createServer((request, response) => {
    state.open += 1;
    response.on('close', () => {
      state.open -= 1;
    });
    request.resume().on('end', () => void answer(response).catch(() => {}));
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.teardown(() => {
    http.close();
    http.closeAllConnections();
  });
  const baseUrl = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return { state, ...(await connect(t, { ...PROVIDERS[name].options, baseUrl })) };
}

/** Writes until the client has left. */
async function endless(to: NodeJS.WritableStream, response: ServerResponse, chunk: string | Uint8Array): Promise<void> {
  const left = once(response, 'close');
  while (!response.destroyed) if (!to.write(chunk)) await Promise.race([once(to, 'drain'), left]);
}

/** A request of a turn whose caller may hold half of the limit. */
export const turnWith = (limit: number) => turnOf(limit, [CLOCK]);

const FILL = 'x'.repeat(65_536);
const STREAM = (name: ProviderName) => (name === 'bedrock' ? 'application/vnd.amazon.eventstream' : 'text/event-stream');
/** The beginning of an event that never ends: a frame of 512 MiB, or a line. */
const BEGINNING = (name: ProviderName) => (name === 'bedrock' ? Buffer.from([0x20, 0, 0, 0]) : 'data: {"a":"');

/** Checks that an event, an error body and a compressed answer without end are refused. */
export async function assertRefused(t: Test, name: ProviderName): Promise<void> {
  const headers = { 'content-type': STREAM(name) };
  const event = await hostile(t, name, async (response) => {
    response.writeHead(200, headers).write(BEGINNING(name));
    await endless(response, response, FILL);
  });
  const turn = turnWith(512 * MIB);
  t.match(await readError(event, turn.request), { message: /an event of more than 16 MiB/, retryable: false });
  t.ok(turn.budget.report.peak >= Account.costOf(15 * MIB), 'it was reserved before');
  const small = turnWith(16 * MIB);
  t.match(await readError(event, small.request), { name: 'TurnError', message: /limits\.memory/ });
  t.ok(small.budget.report.peak <= 8 * MIB);

  const error = await hostile(t, name, async (response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).write('{"error":{"message":"');
    await endless(response, response, FILL);
  });
  const refused = await readError(error, turn.request);
  t.match(refused, { message: /400/ });
  t.ok(refused.message.length < 2000);

  const bomb = await hostile(t, name, async (response) => {
    const gzip = createGzip();
    gzip.pipe(response.writeHead(200, { ...headers, 'content-encoding': 'gzip' }));
    gzip.write(BEGINNING(name));
    await endless(gzip, response, FILL);
  });
  t.match(await readError(bomb, turn.request), { message: /an event of more than 16 MiB/ });

  for (const { state } of [event, error, bomb]) while (state.open > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  for (const { budget, end } of [turn, small]) {
    t.ok(budget.used <= 64 * 1024, 'nothing stays reserved');
    end();
    t.equal(budget.used, 0);
  }
}
