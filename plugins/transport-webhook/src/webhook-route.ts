import type { ChannelInbox } from '@plugboard/channel-kit';
import type { Clock } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { HttpError, type HttpReply, type HttpRequest, type HttpRoute, retryAfterHeaders } from '@plugboard/transport-http';
import { messageOf, type ReplyTo } from './message.js';
import type { SignatureHeaders, Signatures } from './signatures.js';

interface WebhookRouteDependencies {
  /** The key of the entry. */
  readonly name: string;
  readonly signatures: Signatures;
  readonly inbox: ChannelInbox<ReplyTo, string>;
  readonly clock: Clock;
}

/** Milliseconds after which a refused message may be sent again. */
const RETRY_AFTER = 5_000;

/**
 * `POST /channels/<entry>` (WH-1): takes a signed message. 202 once it is durable: the turn runs
 * later, and its reply is posted.
 */
export function webhookRoute({ name, signatures, inbox, clock }: WebhookRouteDependencies): HttpRoute {
  return {
    method: 'POST',
    path: `/channels/${name.replaceAll(/[{}()[\]+?!:*\\]/g, '\\$&')}`,
    access: 'public',
    body: 'bytes',
    startsWork: true,
    async handle(request): Promise<HttpReply> {
      const body = request.body as Uint8Array;
      const headers = headersOf(request);
      const fault = typeof headers === 'string' ? headers : signatures.faultOf(headers, body, clock.now());
      if (typeof headers === 'string' || fault !== undefined) {
        request.note({ refused: fault });
        throw unsigned();
      }
      request.note({ token_name: name });
      const id = headers['webhook-id'];
      const message = messageOf(id, body, request.account);
      const [receipt] = await inbox.receive([message]).catch((error: unknown) => {
        if (!(error instanceof TurnError)) request.note({ not_stored: String(error) });
        throw unavailable(error);
      });
      if (receipt === 'full') throw full();
      return { status: 202, body: { status: 'accepted', id } };
    },
  };
}

/** The three headers, each of them once, or which one is missing. */
function headersOf({ headers }: HttpRequest): SignatureHeaders | string {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers;
  if (typeof id !== 'string') return 'webhook-id is missing';
  if (typeof timestamp !== 'string') return 'webhook-timestamp is missing';
  if (typeof signature !== 'string') return 'webhook-signature is missing';
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
}

function unsigned(): HttpError {
  const message =
    'The signature is missing, wrong, or more than 5 minutes old or ahead. Sign the message as Standard Webhooks 1.0.0 says.';
  return new HttpError(401, message, { code: 'invalid_signature' });
}

function full(): HttpError {
  const message = 'The queue of the chat is full: 100 messages wait. Send the message again later.';
  return new HttpError(429, message, { code: 'chat_full', headers: retryAfterHeaders(RETRY_AFTER) });
}

function unavailable(error: unknown): HttpError {
  const headers = retryAfterHeaders(RETRY_AFTER);
  if (!(error instanceof TurnError))
    return new HttpError(503, 'The message could not be stored. Send it again.', { code: 'unavailable', headers });
  if (error.code === 'draining')
    return new HttpError(503, 'The server is stopping. Send the message again.', { code: 'stopping', headers });
  return new HttpError(503, error.message, { code: error.code, headers });
}
