import type { Account } from '@plugboard/kernel/contracts';
import { parseRequest, type ResponseRequest, unsupported } from '@plugboard/open-responses';
import { invalidRequest, type ProtocolError } from '@plugboard/openai-protocol';
import { HttpError, parseJsonObject } from '@plugboard/transport-http';

/** A message of a client, checked. */
export type ClientMessage =
  | { readonly kind: 'create'; readonly request: ResponseRequest }
  | { readonly kind: 'cancel'; readonly id: string }
  | { readonly kind: 'resume'; readonly id: string; readonly after: number }
  | { readonly kind: 'watch'; readonly conversation: string | undefined }
  | { readonly kind: 'ping'; readonly id: unknown };

/** An invalid message, with its `stream_id` if it has one. */
export class InvalidMessage extends Error {
  override readonly name = 'InvalidMessage';

  constructor(
    readonly reason: HttpError,
    readonly streamId: string | undefined,
  ) {
    super(reason.message);
  }
}

/**
 * @param account reserves the memory of its values.
 * @throws InvalidMessage; HttpError 503 without memory.
 */
export function parseMessage(text: string, account: Account): ClientMessage {
  let message: Readonly<Record<string, unknown>> = {};
  try {
    message = parseObject(text, account);
    return read(message);
  } catch (error) {
    if (!(error instanceof HttpError) || error.status >= 500) throw error;
    const { stream_id: streamId } = message;
    throw new InvalidMessage(error, typeof streamId === 'string' && streamId.length <= 64 ? streamId : undefined);
  }
}

function parseObject(text: string, account: Account): Readonly<Record<string, unknown>> {
  try {
    return parseJsonObject(text, account);
  } catch (error) {
    throw error instanceof HttpError && error.status < 500 ? invalidRequest(error.message, { code: 'invalid_json' }) : error;
  }
}

/** Reads a message, by its type. */
const TYPES: Readonly<Record<string, (message: Readonly<Record<string, unknown>>) => ClientMessage>> = {
  'response.create': (message) => ({ kind: 'create', request: createOf(message) }),
  'response.cancel': (message) => ({ kind: 'cancel', id: idOf(message) }),
  'svc:response.resume': (message) => ({ kind: 'resume', id: idOf(message), after: startingAfter(message) }),
  'svc:conversation.watch': (message) => ({ kind: 'watch', conversation: conversationOf(message) }),
  'svc:ping': ({ id = null }) => ({ kind: 'ping', id }),
};

function read(message: Readonly<Record<string, unknown>>): ClientMessage {
  const { type } = message;
  const known = typeof type === 'string' && Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (!known) throw unsupportedEvent(type);
  return known(message);
}

/**
 * A socket always streams, so the fields of HTTP streaming mean nothing here. `stream: true` is
 * accepted because SDKs send it.
 */
function createOf({ type: _, stream, stream_options: __, ...body }: Readonly<Record<string, unknown>>): ResponseRequest {
  if (stream !== undefined && stream !== null && stream !== true) {
    throw unsupported('stream', "a WebSocket always streams. Omit 'stream'");
  }
  return parseRequest(body);
}

function idOf({ response_id: id }: Readonly<Record<string, unknown>>): string {
  if (typeof id === 'string') return id;
  throw missing('response_id');
}

/** The conversation to watch; undefined for null: none. */
function conversationOf({ conversation: id }: Readonly<Record<string, unknown>>): string | undefined {
  if (id === null) return undefined;
  if (typeof id === 'string') return id;
  throw missing('conversation');
}

function missing(param: string): ProtocolError {
  return invalidRequest(`Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' });
}

function startingAfter({ starting_after: after }: Readonly<Record<string, unknown>>): number {
  if (after == null) return -1;
  if (Number.isInteger(after) && (after as number) >= -1) return after as number;
  throw invalidRequest("Invalid 'starting_after': expected the sequence number of an event.", {
    param: 'starting_after',
    code: 'invalid_value',
  });
}

function unsupportedEvent(type: unknown): ProtocolError {
  const named = typeof type === 'string' ? `'${type.slice(0, 64)}' is not supported` : 'it is missing';
  const supported = new Intl.ListFormat('en').format(Object.keys(TYPES).map((known) => `'${known}'`));
  return invalidRequest(`Invalid 'type': ${named}. Supported values are: ${supported}.`, {
    param: 'type',
    code: 'unsupported_event',
  });
}
