import { conversationId, type SessionId, type TurnRequest } from '@plugboard/kernel/contracts';
import { ParentCall } from '../../engine/turn/parent-call.js';

/** Keys of callers have no control characters, so that none is the key of a child's session. */
const SEPARATOR = '\u001f';

/**
 * The session of a request. The project comes from the credential only. Equal keys of two agents
 * are two sessions.
 */
export function sessionOf({ target, principal, session }: TurnRequest): SessionId | undefined {
  return session && { project: principal.project, agent: target.name, key: session.key };
}

/** The session of the first turn of a tree, to which those of its children belong. */
export function parentSessionOf(request: TurnRequest): SessionId | undefined {
  const root = ParentCall.of(request)?.root;
  return root && sessionOf(root.options.request);
}

/**
 * The request of a child, as its call allows it: its session is one of the session of the call's
 * turn, in which calls wait for each other; without that, it has none (AG-7).
 */
export function childRequest(asked: TurnRequest, parent: ParentCall): TurnRequest {
  const request = parent.adopt(asked);
  const above = sessionOf(parent.options.request);
  if (!request.session) return request;
  const session = above && { key: `${conversationId(above)}${SEPARATOR}${request.session.key}`, busy: 'enqueue' };
  return { ...request, session, wholeHistory: undefined, commitState: undefined } as TurnRequest;
}
