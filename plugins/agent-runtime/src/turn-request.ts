import {
  type ApprovalDecision,
  isToolImagesMessage,
  missingScope,
  TurnError,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import { mayUse } from './engine/directory/directory.js';
import { hasMedia } from './engine/messages/media.js';
import { assertMessages } from './engine/messages/message-shape.js';
import { assertSessionKey } from './sessions/store/session-key.js';

/**
 * Checks what every door must check, so that a channel of any author is as safe as HTTP: the
 * caller's scope and agents, the session key, the messages.
 *
 * @throws TurnError `forbidden` or `invalid_request`, before anything else looks at the request.
 */
export function assertTurnRequest(request: TurnRequest): void {
  const { principal, target, session, messages, approvals } = request;
  const missing = missingScope(principal, ['chat']);
  if (missing !== undefined) throw new TurnError('forbidden', `This API token lacks the scope \`${missing}\`.`);
  if (!mayUse(principal, target)) throw new TurnError('forbidden', `This API token may not use '${target.name}'.`);
  if (session) assertSessionKey(session.key, 'session.key');
  assertMessages(messages);
  if (approvals) assertDecisions(approvals);
  if (messages.length === 0 && !approvals?.length)
    throw new TurnError('invalid_request', 'messages must contain at least one message.', { param: 'messages' });
  if (!target.input.includes('image')) assertText(request);
}

/** A decision says one thing about one call. */
function assertDecisions(approvals: readonly (Partial<ApprovalDecision> | null)[]): void {
  const isValid = (one: Partial<ApprovalDecision> | null) =>
    typeof one?.id === 'string' && typeof one.approve === 'boolean' && ['string', 'undefined'].includes(typeof one.reason);
  if (!Array.isArray(approvals) || !approvals.every(isValid))
    throw invalidDecisions('each needs an `id`, `approve` (true or false), and may have a `reason`');
  if (new Set(approvals.map(({ id }) => id)).size < approvals.length) throw invalidDecisions('two are about the same call');
}

function invalidDecisions(why: string): TurnError {
  return new TurnError('invalid_request', `The decisions about tool calls are not valid: ${why}.`, { param: 'approvals' });
}

/** Of a session's request, only what follows the last answer is new. */
function assertText({ target, session, messages }: TurnRequest): void {
  const start = session ? messages.findLastIndex(({ role }) => role === 'assistant') : 0;
  for (const [index, message] of messages.entries()) {
    // A model that takes no images receives a note about those that tools returned.
    if (index < start || !hasMedia(message) || isToolImagesMessage(messages, index)) continue;
    const part = message.content.findIndex(({ type }) => type !== 'text');
    const param = `messages[${index}].content[${part}]`;
    throw new TurnError(
      'invalid_request',
      `${param} has the type '${message.content[part]?.type}', and the model connection '${target.connection}' takes text only.`,
      { param },
    );
  }
}
