import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger, PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { HttpApplication } from '../application/application.js';
import type { HttpError } from '../errors/http-error.js';
import { draining, notFound, notRunning } from '../errors/refusals.js';
import type { HttpHandler } from '../routing/handler.js';
import { splitTarget } from '../routing/request-target.js';
import { Connections } from './connections.js';
import { EarlyReplies } from './early-replies.js';
import { serializePipelining } from './serialize-pipelining.js';

/**
 * The handler for a server that belongs to somebody else: what `createNodeServer` does for our own,
 * as far as the owner of a server can be helped with it.
 */
export class EmbeddedHandler implements HttpHandler {
  readonly #log: Logger;
  readonly #application: HttpApplication;
  readonly #connections: Connections;
  readonly #early: EarlyReplies;
  readonly #serve: (req: IncomingMessage, res: ServerResponse) => void;
  readonly #handled = new WeakSet<IncomingMessage>();
  readonly #known = new WeakSet<Socket>();
  #state: 'starting' | 'running' | 'stopped' = 'starting';

  constructor(
    @inject(CONTEXT) { log }: PluginContext,
    @inject(HttpApplication) application: HttpApplication,
    @inject(Connections) connections: Connections,
    @inject(EarlyReplies) early: EarlyReplies,
  ) {
    this.#log = log;
    this.#application = application;
    this.#connections = connections;
    this.#early = early;
    this.#serve = serializePipelining((req, res) => application.request(req, res));
  }

  open(): void {
    this.#state = 'running';
  }

  close(): void {
    this.#state = 'stopped';
  }

  readonly request = (req: IncomingMessage, res: ServerResponse): void => {
    if (!this.#isFirst(req)) return;
    const refusal = this.#refusal();
    if (refusal) this.#early.toResponse(res, refusal);
    else if (this.#isAdmitted(req.socket)) this.#serve(req, res);
  };

  readonly upgrade = (req: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!this.#isFirst(req)) return;
    if (!(socket instanceof Socket)) {
      socket.destroy();
      return;
    }
    const [path] = splitTarget(req.url ?? '');
    // Node gives the body of such a request to nobody, so it cannot be served without the upgrade.
    const refusal = this.#refusal() ?? (this.#application.isUpgrade(req) ? undefined : notFound(req.method ?? '', path));
    if (!this.#isAdmitted(socket)) return;
    if (refusal) this.#early.toSocket(socket, refusal);
    else this.#application.upgrade(req, socket, head);
  };

  /** Whether a request is new. One that comes twice is being answered. */
  #isFirst(req: IncomingMessage): boolean {
    if (!this.#handled.has(req)) {
      this.#handled.add(req);
      return true;
    }
    this.#log.error(
      { method: req.method },
      'a request was handed over twice, and was served once: mount the handler of HttpHandlers in one place only',
    );
    return false;
  }

  #refusal(): HttpError | undefined {
    if (this.#state === 'starting') return notRunning();
    return this.#state === 'stopped' ? draining() : undefined;
  }

  /** Counts a connection when it brings its first request. */
  #isAdmitted(socket: Socket): boolean {
    if (!this.#known.has(socket)) {
      this.#known.add(socket);
      this.#connections.add(socket);
    }
    return !this.#connections.isRefused(socket);
  }
}
