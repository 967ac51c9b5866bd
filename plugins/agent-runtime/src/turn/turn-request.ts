import { missingScope, TurnError, type TurnRequest } from '@plugboard/kernel/contracts';
import { mayUse } from '../directory/directory.js';
import { assertMessages } from '../history/message-shape.js';
import { assertSessionKey } from '../store/session-key.js';

/**
 * Checks what every door must check, so that a channel of any author is as safe as HTTP: the
 * caller's scope and agents, the session key, the messages.
 *
 * @throws TurnError `forbidden` or `invalid_request`, before anything else looks at the request.
 */
export function assertTurnRequest({ principal, target, session, messages }: TurnRequest): void {
  const missing = missingScope(principal, ['chat']);
  if (missing !== undefined) throw new TurnError('forbidden', `This API token lacks the scope \`${missing}\`.`);
  if (!mayUse(principal, target)) throw new TurnError('forbidden', `This API token may not use '${target.name}'.`);
  if (session) assertSessionKey(session.key, 'session.key');
  assertMessages(messages);
}
