import type { Message, SessionStore } from '@plugboard/kernel';
import type { SessionId } from '@plugboard/kernel/contracts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const OWNER = { project: 'acme', agent: 'helper' };
export const session = (key: string): SessionId => ({ ...OWNER, key });
export const ANNA = session('anna');

/** A turn of two messages that contain its number. */
export function turn(n: number, content = `question ${n}`): readonly Message[] {
  return [
    { role: 'user', content },
    { role: 'assistant', content: `answer ${n}` },
  ];
}

export async function loaded(store: SessionStore, id: SessionId) {
  const { version, messages } = await store.load(id);
  return { version, messages };
}
