import type { LiveAnswer } from '@plugboard/channel-kit';
import type { Test } from 'tap';
import type { SlackTo } from '../../src/base/slack.js';
import type { Kept, SlackOutgoing } from '../../src/sending/content.js';
import { type Opened, opened } from './opened.js';
import type { SlackMessage } from './slack-conversations.js';

/** A thread with one message, which is answered. */
export const THREAD: SlackTo = { channel: 'C1', thread: '1790000000.000001', user: 'U1', team: 'T1', since: '1790000000.000001' };
export const { signal } = new AbortController();

/** An entry that answers in a thread, without the kit. */
export interface Answering extends Opened {
  /** What was kept last. */
  kept(): Kept | undefined;
  live(kept?: Kept): LiveAnswer | undefined;
  /** Sends all parts of a text as the kit does. @returns the result of the last attempt. */
  reply(text: string, more?: Partial<SlackOutgoing>): Promise<unknown>;
  /** The messages of the bot in the thread. */
  answers(): readonly SlackMessage[];
}

export async function answering(t: Test): Promise<Answering> {
  const entry = await opened(t);
  const { slack, platform } = entry;
  slack.conversations.ts(); // the message that is answered
  let kept: Kept | undefined;
  const base = { id: 'msg_1', chat: 'C1', to: THREAD };
  const live = (before?: Kept) =>
    platform.live({
      ...base,
      sender: { id: 'U1' },
      kept: before,
      keep: async (value) => {
        kept = value;
      },
    });
  const reply = async (text: string, more: Partial<SlackOutgoing> = {}) => {
    const parts = platform.split(text);
    let result: unknown;
    for (const [index, part] of parts.entries()) {
      const message = {
        ...base,
        text: part,
        index,
        count: parts.length,
        kind: 'reply',
        at: 0,
        mayHaveArrived: false,
        kept,
      } as const;
      result = await platform.send({ ...message, ...more }, signal);
    }
    return result;
  };
  return { ...entry, kept: () => kept, live, reply, answers: () => slack.conversations.answers };
}

/** The methods that were called, in order. */
export function methodsOf({ slack }: Opened): readonly string[] {
  return slack.calls
    .map(({ method, outcome }) => (outcome === 'ok' ? method : `${method} ${outcome}`))
    .filter((method) => method !== 'auth.test');
}
