import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Lifecycle, Transport } from '@plugboard/kernel';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { waitFor } from '../contract/wait.js';

/** A transport and the lifecycle of its plugin, not started. @experimental */
export interface OpenedTransport {
  readonly transport: Transport;
  readonly lifecycle: Lifecycle;
}

/** The options of `transportContract`. @experimental */
export interface TransportContractOptions {
  /** Returns a transport that listens on a free port. The suite starts and stops it, per case. */
  readonly open: () => Promise<OpenedTransport> | OpenedTransport;
}

/**
 * Declares the tests of an endpoint that callers connect to (`Transport`), over real sockets.
 *
 * ```ts
 * const open = () => {
 *   const ctx = testContext(plugin, { config: { port: 0 } });
 *   return { transport: ctx.contributed(Transports), lifecycle: ctx.lifecycle };
 * };
 * transportContract(t.test, { open });
 * ```
 *
 * @experimental
 */
export function transportContract(test: DeclareTest, { open }: TransportContractOptions): void {
  const contract = new Contract('A transport', test);
  const add = (promise: string, source: string, check: (opened: OpenedTransport) => Promise<void>) =>
    contract.add(promise, source, async () => {
      const opened = await open();
      try {
        await check(opened);
      } finally {
        await stop(opened);
      }
    });

  add('has no address before it runs', 'Transport.address', async ({ transport }) => {
    const address = transport.address();
    assert.ok(address === undefined, `its address is "${address}" before \`start\``);
  });
  add('has a URL as its address once it runs', 'Transport.address', async (opened) => {
    await start(opened);
    const address = opened.transport.address();
    assert.ok(address !== undefined && URL.canParse(address), `its address is ${JSON.stringify(address)}`);
  });
  add('accepts connections once it has started', 'Lifecycle 2', async (opened) => {
    await start(opened);
    assert.ok(await accepts(opened.transport.address()), `${opened.transport.address()} refuses connections after \`start\``);
  });
  add('accepts no connection after it has stopped', 'Lifecycle 6', async (opened) => {
    await start(opened);
    const address = opened.transport.address();
    await stop(opened);
    assert.ok(!(await accepts(address)), `${address} accepts connections after \`stop\``);
  });
  add('stops while a connection is open', 'Lifecycle 6', async (opened) => {
    await start(opened);
    const socket = await connected(opened.transport.address());
    assert.ok(socket, `${opened.transport.address()} refuses connections after \`start\``);
    try {
      await stop(opened);
    } finally {
      socket.destroy();
    }
  });
  add('stops without having started, and twice', 'Lifecycle 6', async (opened) => {
    await stop(opened);
    await stop(opened);
  });
}

async function start({ lifecycle }: OpenedTransport): Promise<void> {
  const begin = async () => lifecycle.start?.(new AbortController().signal);
  await waitFor('`start`', begin(), lifecycle.startLimit);
}

/** The signal aborts after a second, as if the time limit were over. */
async function stop({ lifecycle }: OpenedTransport): Promise<void> {
  const end = async () => lifecycle.stop?.(AbortSignal.timeout(1_000));
  await waitFor('`stop`', end(), lifecycle.stopLimit);
}

async function accepts(address: string | undefined): Promise<boolean> {
  const socket = await connected(address);
  socket?.destroy();
  return socket !== undefined;
}

async function connected(address: string | undefined) {
  assert.ok(address !== undefined, 'it has no address');
  const { hostname, port, protocol } = new URL(address);
  const defaultPort = /^(https|wss):$/.test(protocol) ? 443 : 80;
  const socket = connect(Number(port) || defaultPort, hostname.replace(/^\[(.*)\]$/, '$1'));
  try {
    await waitFor(`a connection to ${address}`, once(socket, 'connect'));
    socket.on('error', () => {}); // the transport may reset the connection
    return socket;
  } catch {
    return undefined;
  }
}
