import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

/** A connection of Socket Mode. */
export interface SlackSocket {
  readonly number: number;
  readonly socket: WebSocket;
}

/** An envelope that waits for its acknowledgement, or has it. */
export interface Envelope {
  readonly id: string;
  readonly type: 'events_api' | 'slash_commands' | 'interactive';
  readonly payload: object;
  /** The number of the connection that it was last sent on, and how often it was sent. */
  connection: number;
  attempts: number;
  /** The number of the connection that acknowledged it. */
  acknowledged?: number;
}

/**
 * Socket Mode. An envelope goes to the newest connection. What was not acknowledged when its
 * connection closed goes to the next one, as a retry.
 */
export class SlackSockets {
  readonly envelopes: Envelope[] = [];
  /** The connections that are open, the oldest first. */
  readonly open: SlackSocket[] = [];
  /** What happened, in order: `open 1`, `close 1`. */
  readonly events: string[] = [];
  /** Whether a connection is greeted, and so may receive. */
  greets = true;
  onSent: (envelope: Envelope) => void = () => {};
  onAcknowledged: (envelope: Envelope) => void = () => {};
  readonly #server = new WebSocketServer({ noServer: true });
  #connections = 0;
  #tickets = 0;

  /** The address of the next connection, good for one. */
  address(url: string): string {
    this.#tickets++;
    return `${url.replace('http', 'ws')}/link?ticket=${this.#tickets}`;
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#connected(webSocket));
  }

  /** Sends an envelope. @returns it. */
  send(type: Envelope['type'], payload: object): Envelope {
    const envelope: Envelope = { id: `env-${this.envelopes.length + 1}`, type, payload, connection: 0, attempts: 0 };
    this.envelopes.push(envelope);
    this.#deliver(envelope);
    return envelope;
  }

  /** Sends one that was sent before, as if its acknowledgement had not come. */
  sendAgain(envelope: Envelope): void {
    delete envelope.acknowledged;
    this.#deliver(envelope);
  }

  /** Asks the newest connection to go: `warning` about 10 s before the platform closes it. */
  disconnect(reason: 'warning' | 'refresh_requested' | 'link_disabled'): void {
    this.open.at(-1)?.socket.send(JSON.stringify({ type: 'disconnect', reason, debug_info: { host: 'host' } }));
  }

  /** Closes every connection without a word. */
  cut(): void {
    for (const { socket } of [...this.open]) socket.terminate();
  }

  stop(): void {
    this.cut();
    this.#server.close();
  }

  #connected(socket: WebSocket): void {
    this.#connections++;
    const connection = { number: this.#connections, socket };
    socket.on('message', (data) => this.#received(connection, String(data)));
    socket.on('close', () => this.#closed(connection));
    if (!this.greets) return;
    this.open.push(connection);
    this.events.push(`open ${connection.number}`);
    socket.send(JSON.stringify({ type: 'hello', num_connections: this.open.length, connection_info: { app_id: 'A1' } }));
    for (const envelope of this.envelopes) if (envelope.acknowledged === undefined) this.#deliver(envelope);
  }

  #deliver(envelope: Envelope): void {
    const connection = this.open.at(-1);
    if (!connection) return;
    const { id, type, payload, attempts } = envelope;
    const retry = attempts === 0 ? {} : { retry_attempt: attempts, retry_reason: 'timeout' };
    envelope.connection = connection.number;
    envelope.attempts++;
    const accepts = { accepts_response_payload: type !== 'events_api' };
    connection.socket.send(JSON.stringify({ envelope_id: id, type, payload, ...accepts, ...retry }));
    this.onSent(envelope);
  }

  #received({ number }: SlackSocket, text: string): void {
    const { envelope_id } = JSON.parse(text);
    const envelope = this.envelopes.find(({ id }) => id === envelope_id);
    if (!envelope) return;
    envelope.acknowledged = number;
    this.onAcknowledged(envelope);
  }

  #closed(connection: SlackSocket): void {
    const index = this.open.indexOf(connection);
    if (index === -1) return;
    this.open.splice(index, 1);
    this.events.push(`close ${connection.number}`);
    for (const envelope of this.envelopes) {
      if (envelope.acknowledged === undefined && envelope.connection === connection.number) this.#deliver(envelope);
    }
  }
}
