import { type Fields, fieldsOf, listOf, textOf } from '../base/fields.js';
import type { Account, SlackImage, SlackTo } from '../base/slack.js';
import type { Arrival } from './arrival.js';
import { plainText } from './plain-text.js';

/** Messages of people. Others are changes, deletions, and what the platform itself writes. */
const SUBTYPES: readonly unknown[] = [undefined, 'file_share', 'thread_broadcast', 'me_message'];
const IMAGES: readonly unknown[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const MAX_IMAGE = 10 * 1024 * 1024;
/** Commands without the slash, which Slack keeps for its own. */
const COMMAND = /^!(?=(?:new|stop|agent|help|start)\b)/;

/** What a `message` or `app_mention` is for the agent. @returns undefined if it is nothing. */
export function messageArrival(body: Fields, account: Account): Arrival | undefined {
  const event = fieldsOf(body.event);
  const { channel, ts, user } = namesOf(event);
  if (channel === undefined || ts === undefined || user === undefined) return undefined;
  const isPerson = event.bot_id === undefined && event.bot_profile === undefined && user !== account.user && user !== 'USLACKBOT';
  if (!isPerson || !SUBTYPES.includes(event.subtype) || event.edited !== undefined || event.hidden === true) return undefined;
  const isPrivate = event.channel_type === 'im' || channel.startsWith('D');
  const isInThread = textOf(event.thread_ts) !== undefined && event.thread_ts !== ts;
  // A mention outside of threads begins the thread that it is answered in.
  const thread = isInThread ? textOf(event.thread_ts) : isPrivate ? undefined : ts;
  const team = textOf(event.user_team) ?? textOf(event.source_team) ?? textOf(event.team);
  const raw = textOf(event.text) ?? '';
  const isAddressed = mentionOf(account).test(raw);
  const to: SlackTo = { channel, user, team: team ?? account.team, since: ts, ...(thread === undefined ? {} : { thread }) };
  const begunBy = textOf(event.parent_user_id);
  return {
    incoming: {
      ids: [...idOf(body, account), `${account.team}/${channel}/${ts}`],
      chat: channel,
      thread,
      to,
      sender: { id: user, name: nameOf(event) },
      text: textFor(raw, account),
      ...contentOf(event),
      isPrivate,
      isAddressed,
    },
    team,
    follows: isInThread && !isPrivate && !isAddressed && !/^\s*<@/.test(raw),
    begunBy: isInThread && begunBy !== user && begunBy !== account.user ? begunBy : undefined,
  };
}

/** The name of the delivery, if it has one. */
export function idOf(body: Fields, account: Account): readonly string[] {
  const id = textOf(body.event_id);
  return id === undefined ? [] : [`${account.team}/${id}`];
}

function namesOf(event: Fields): { channel?: string | undefined; ts?: string | undefined; user?: string | undefined } {
  return { channel: textOf(event.channel), ts: textOf(event.ts), user: textOf(event.user) };
}

function nameOf(event: Fields): string | undefined {
  const { display_name, real_name, name } = fieldsOf(event.user_profile);
  return textOf(display_name) ?? textOf(real_name) ?? textOf(name);
}

function mentionOf({ user }: Account): RegExp {
  return new RegExp(`<@${user}(?:\\|[^<>]*)?>`);
}

/** The text without the mention that it begins with, and `!new` as `/new`. */
function textFor(raw: string, account: Account): string {
  const mention = new RegExp(`^\\s*${mentionOf(account).source}[\\s:,]*`);
  return plainText(raw.replace(mention, ''), account).trim().replace(COMMAND, '/');
}

/** Images to load, and what the message has besides. */
function contentOf(event: Fields): { images?: readonly SlackImage[]; unsupported?: string } {
  const files = listOf(event.files);
  const images = files.flatMap((file) => imageOf(file));
  if (images.length < files.length) return { unsupported: 'a file that is not an image of up to 10 MB' };
  const isShared = textOf(event.text) === undefined && listOf(event.attachments).length > 0;
  if (isShared) return { unsupported: 'a shared message' };
  return images.length > 0 ? { images } : {};
}

function imageOf(file: Fields): readonly SlackImage[] {
  const url = textOf(file.url_private_download) ?? textOf(file.url_private);
  const { mimetype, size } = file;
  if (url === undefined || !IMAGES.includes(mimetype) || typeof size !== 'number' || size > MAX_IMAGE) return [];
  return [{ url, size }];
}
