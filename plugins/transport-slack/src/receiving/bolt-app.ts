import type { App, Receiver } from '@slack/bolt';
import type { Fields } from '../base/fields.js';
import { ACTION } from '../base/slack.js';
import { type Bolt, SilentLogger } from '../web-api/web-client.js';

/** Hands a delivery to Bolt. Resolves once it is durable: only then may Slack be told. */
export type Process = (body: Fields) => Promise<void>;

/** A receiver that listens on nothing: deliveries come through `processEvent`. */
const RECEIVER: Receiver = { init() {}, async start() {}, async stop() {} };

/**
 * A Bolt app whose listeners hand each event, slash command and press to `handle`.
 *
 * Bolt acknowledges an event before its listeners run. Slack would then not deliver an event again
 * that a crash lost. So Bolt's acknowledgement is not passed on, and the caller gives its own.
 */
export function boltApp({ App }: Bolt, botToken: string, handle: (body: unknown) => Promise<void>): Process {
  const app: App = new App({
    receiver: RECEIVER,
    authorize: async () => ({ botToken }),
    ignoreSelf: false,
    convoStore: false,
    logger: new SilentLogger(),
  });
  app.event(/^(?:message|app_mention|agent_session_stopped)$/, ({ body }) => handle(body));
  app.command(/./, ({ body }) => handle(body));
  app.action(new RegExp(`^${ACTION}`), ({ body }) => handle(body));
  app.error(async (error) => {
    throw error;
  });
  return (body) => app.processEvent({ body, ack: async () => {} });
}
