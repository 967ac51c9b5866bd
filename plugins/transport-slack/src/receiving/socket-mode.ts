import type { Clock } from '@plugboard/kernel';
import type { SocketModeReceiver } from '@slack/bolt';
import { type Fields, fieldsOf } from '../base/fields.js';
import { refusalOf } from '../web-api/identify.js';
import { type Bolt, clientOptions, SilentLogger } from '../web-api/web-client.js';
import type { Process } from './bolt-app.js';

/** Milliseconds until a connection must be greeted. */
const HELLO_TIMEOUT = 15_000;
/** Milliseconds for Slack to answer the close of a connection. */
const CLOSE_TIMEOUT = 1_000;
const CURE = 'generate an app-level token with the scope connections:write';

interface SocketModeDependencies {
  readonly bolt: Bolt;
  readonly clock: Clock;
  readonly appToken: string;
  readonly apiUrl: string;
  readonly process: Process;
}

/** A connection of Socket Mode. */
interface Connection {
  /** Resolves with the reason when Slack asks it to go, and with `closed` when it is closed. */
  readonly ended: Promise<string>;
  close(): void;
}

type SocketModeClient = SocketModeReceiver['client'];

/**
 * Receives by Socket Mode.
 *
 * 1. A delivery is acknowledged on the connection that it came by, once it is durable. If that has
 *    been closed, Slack delivers it again.
 * 2. When Slack announces that it closes the connection, the next one is opened first.
 * 3. A connection that is lost is replaced once. If that fails, `run` throws.
 */
export class SocketMode {
  readonly #dependencies: SocketModeDependencies;

  constructor(dependencies: SocketModeDependencies) {
    this.#dependencies = dependencies;
  }

  /** @throws Error with the cause and the cure. */
  async run(signal: AbortSignal, connected: () => void): Promise<void> {
    const stopped = aborted(signal);
    let connection = await this.#open(signal);
    try {
      connected();
      for (;;) {
        const reason = await Promise.race([connection.ended, stopped]);
        if (reason === undefined) return;
        if (reason === 'link_disabled') throw new Error('Socket Mode is switched off: switch it on in the settings of the app');
        const next = await this.#open(signal);
        connection.close();
        connection = next;
      }
    } finally {
      connection.close();
    }
  }

  async #open(signal: AbortSignal): Promise<Connection> {
    const { bolt, appToken, apiUrl, clock } = this.#dependencies;
    const giveUp = new AbortController();
    const opening = AbortSignal.any([signal, giveUp.signal]);
    const logger = new SilentLogger();
    const { client } = new bolt.SocketModeReceiver({
      appToken,
      logger,
      autoReconnectEnabled: false,
      installerOptions: { clientOptions: clientOptions(apiUrl, opening) },
    });
    const connection = this.#listen(client);
    const timer = clock.after(HELLO_TIMEOUT, () => giveUp.abort());
    try {
      await Promise.race([client.start(), aborted(opening)]);
      if (opening.aborted) throw new Error('Slack does not greet the connection of Socket Mode');
      return connection;
    } catch (error) {
      connection.close();
      throw error === undefined ? new Error('Slack closes the connection of Socket Mode') : refusalOf(error, 'appToken', CURE);
    } finally {
      timer.cancel();
    }
  }

  #listen(client: SocketModeClient): Connection {
    const ended = Promise.withResolvers<string>();
    client.on(
      'slack_event',
      ({ body, ack }: { body: unknown; ack: () => Promise<void> }) => void this.#deliver(fieldsOf(body), ack),
    );
    client.on('disconnected', () => ended.resolve('closed'));
    // The client closes its connection as soon as Slack announces the end of it: this comes first.
    const deliver = client.listeners('ws_message');
    client.removeAllListeners('ws_message');
    client.on('ws_message', (data: unknown, isBinary: boolean) => {
      const reason = isBinary ? undefined : announcedEnd(String(data));
      if (reason !== undefined) return ended.resolve(reason);
      for (const listener of deliver) listener(data, isBinary);
    });
    let isClosed = false;
    const close = () => {
      if (isClosed) return;
      isClosed = true;
      void client.disconnect().catch(() => {});
      // The second time it does not wait for Slack.
      const timer = this.#dependencies.clock.after(CLOSE_TIMEOUT, () => void client.disconnect().catch(() => {}));
      void ended.promise.then(() => timer.cancel());
    };
    return { ended: ended.promise, close };
  }

  /** Never rejects. What is not acknowledged comes again. */
  async #deliver(body: Fields, ack: () => Promise<void>): Promise<void> {
    try {
      await this.#dependencies.process(body);
      await ack();
    } catch {
      // The entry has said why, or the connection is closed.
    }
  }
}

/** The reason of a message that announces the end of the connection. */
function announcedEnd(text: string): string | undefined {
  if (!text.includes('"disconnect"')) return undefined;
  try {
    const { type, reason } = fieldsOf(JSON.parse(text));
    return type === 'disconnect' ? String(reason) : undefined;
  } catch {
    return undefined;
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }));
}
