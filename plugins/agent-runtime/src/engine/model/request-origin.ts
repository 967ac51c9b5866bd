import type { ModelRequest } from '@plugboard/kernel';
import { conversationId, type SessionId } from '@plugboard/kernel/contracts';

/** Where a model request comes from: for caches, limits and logs of model servers. */
export type RequestOrigin = Pick<ModelRequest, 'requestId' | 'session' | 'user'>;

/** The session's key may be secret, so its opaque id stands for it. */
export function requestOrigin(
  { requestId, user }: { readonly requestId: string; readonly user?: string | undefined },
  session: SessionId | undefined,
): RequestOrigin {
  return { requestId, session: session && conversationId(session), user };
}
