import { invalidField, MessagesError } from '../errors/messages-error.js';
import { asFlag, asObject, asText, type Fields, required } from './fields.js';

/** Bytes of the name of an agent. */
const MAX_MODEL = 256;
/** Characters of `metadata.user_id`. */
const MAX_USER = 512;

/** What every request says first. */
export interface RequestHead {
  readonly fields: Fields;
  readonly model: string;
  readonly stream: boolean;
  /** `metadata.user_id`. */
  readonly user: string | undefined;
}

/** @throws MessagesError 400 */
export function headOf(body: unknown): RequestHead {
  const fields = asObject(body, 'body');
  const model = asText(required(fields, 'model', ''), 'model');
  if (model === '' || Buffer.byteLength(model) > MAX_MODEL)
    throw invalidField('model', `String should have 1 to ${MAX_MODEL} bytes`);
  if (fields.thread != null) throw noThreads();
  const stream = fields.stream != null && asFlag(fields.stream, 'stream');
  return { fields, model, stream, user: userOf(fields.metadata) };
}

function userOf(metadata: unknown): string | undefined {
  if (metadata == null) return undefined;
  const { user_id: user } = asObject(metadata, 'metadata');
  if (user == null) return undefined;
  const text = asText(user, 'metadata.user_id');
  if (text.length > MAX_USER) throw invalidField('metadata.user_id', `String should have at most ${MAX_USER} characters`);
  return text;
}

/** A client that is told so sends the whole conversation again, without `thread`. */
function noThreads(): MessagesError {
  return new MessagesError(
    400,
    'invalid_request_error',
    'thread: This server does not keep threads. Send the whole conversation',
    {
      code: 'thread_unsupported_request',
    },
  );
}
