import { sessionKeyProblem } from '@plugboard/kernel/contracts';
import type { Incoming } from '../platform/platform.js';

/** Bytes of a chat's, thread's or sender's id. */
const MAX_ID = 256;

/** Why a message cannot be kept: an id becomes part of the session's key, or of the principal. */
export function incomingFault({ chat, thread, sender }: Pick<Incoming, 'chat' | 'thread' | 'sender'>): string | undefined {
  return idFault('chat', chat) ?? idFault('sender', sender.id) ?? (thread === undefined ? undefined : idFault('thread', thread));
}

/** Why a text is not a valid id, as a sentence about it. */
export function idFault(what: string, id: string): string | undefined {
  const bytes = Buffer.byteLength(id);
  if (id.trim() === '') return `${what} is blank`;
  if (bytes > MAX_ID) return `${what} has ${bytes} bytes, and ${MAX_ID} is the limit`;
  const problem = sessionKeyProblem(id);
  return problem?.kind === 'malformed' ? `${what} is not valid: ${problem.why}` : undefined;
}

/** Characters of a sender's name. */
const MAX_NAME = 100;

/** The same message, with a name that operators and tools can be shown. */
export function withShownName(message: Incoming): Incoming {
  const { id, name } = message.sender;
  const shown = name?.replaceAll(/\p{C}/gu, '').trim().slice(0, MAX_NAME).toWellFormed();
  return { ...message, sender: shown ? { id, name: shown } : { id } };
}
