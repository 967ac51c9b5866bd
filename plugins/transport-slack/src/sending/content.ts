import type { Outgoing } from '@plugboard/channel-kit';
import { fieldsOf } from '../base/fields.js';
import type { SlackTo } from '../base/slack.js';
import { ACTION } from '../base/slack.js';

/** What is kept of an answer that was streamed. */
export interface Kept {
  /** When the stream was begun, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** The message that it is. Missing while its beginning is not acknowledged. */
  readonly ts?: string;
}

export type SlackOutgoing = Outgoing<SlackTo, Kept>;

const EVENT_TYPE = 'plugboard_reply';

/** The arguments of a message for its text and buttons. */
export function contentOf({ text, buttons }: SlackOutgoing) {
  if (buttons === undefined) return { markdown_text: text };
  return { text: text.slice(0, 3_000), blocks: [{ type: 'markdown', text }, ...buttonsOf(buttons)] };
}

/** The block of a reply's buttons. */
export function buttonsOf(buttons: NonNullable<SlackOutgoing['buttons']>) {
  const elements = buttons.map(({ label, line }, index) => ({
    type: 'button',
    action_id: `${ACTION}_${index}`,
    text: { type: 'plain_text', text: label },
    value: line,
  }));
  return elements.length === 0 ? [] : [{ type: 'actions', elements }];
}

/** The reply and the part that a message is: it is found by that. */
export function metadataOf({ id, index }: SlackOutgoing) {
  return { event_type: EVENT_TYPE, event_payload: { id, part: index } };
}

/** Whether a message of Slack is that part. */
export function isPart({ metadata }: { readonly metadata?: unknown }, { id, index }: SlackOutgoing): boolean {
  const { event_type, event_payload } = fieldsOf(metadata);
  const payload = fieldsOf(event_payload);
  return event_type === EVENT_TYPE && payload.id === id && Number(payload.part) === index;
}
