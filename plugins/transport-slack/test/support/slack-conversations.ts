/** A message as the platform keeps it. */
export interface SlackMessage {
  readonly channel: string;
  readonly ts: string;
  readonly thread_ts?: string;
  readonly user: string;
  readonly bot_id?: string;
  text: string;
  blocks?: readonly unknown[];
  metadata?: { readonly event_type: string; readonly event_payload: Readonly<Record<string, unknown>> };
  streaming_state?: 'in_progress' | 'completed';
  /** How often it was changed after it had been posted. */
  edits: number;
}

/** The arguments of a method of the Web API, as they were sent. */
export type Arguments = Readonly<Record<string, string>>;

/** What a method answers, besides `ok`. */
export type Answer = Readonly<Record<string, unknown>>;

export class SlackError extends Error {}

/** Characters of one message. */
const MAX_TEXT = 12_000;
const BOT = { user: 'UBOT', bot_id: 'BBOT' };

/**
 * The messages of a workspace, and the methods that post, change and read them. They refuse what
 * the platform refuses.
 */
export class SlackConversations {
  readonly messages: SlackMessage[] = [];
  #clock = 0;

  /** The next timestamp. Each is later than all that were given before. */
  ts(): string {
    this.#clock++;
    return `1790000000.${String(this.#clock).padStart(6, '0')}`;
  }

  /** The messages of the bot, oldest first. */
  get answers(): readonly SlackMessage[] {
    return this.messages.filter(({ user }) => user === BOT.user);
  }

  /** The message with that timestamp. @throws if there is none. */
  message(channel: string, ts: string): SlackMessage {
    const found = this.messages.find((message) => message.channel === channel && message.ts === ts);
    if (!found) throw new SlackError('message_not_found');
    return found;
  }

  /** Calls a method. @returns undefined if it is not one of a conversation. */
  call(method: string, args: Arguments): Answer | undefined {
    switch (method) {
      case 'chat.postMessage':
        return this.#post(args, {});
      case 'chat.startStream':
        return this.#startStream(args);
      case 'chat.appendStream':
        return this.#appendStream(args);
      case 'chat.stopStream':
        return this.#stopStream(args);
      case 'chat.update':
        return this.#update(args);
      case 'chat.delete':
        return this.#delete(args);
      case 'conversations.replies':
        return this.#page(args, ({ ts, thread_ts }) => ts === args.ts || thread_ts === args.ts);
      case 'conversations.history':
        return this.#page(args, ({ ts, thread_ts }) => thread_ts === undefined || thread_ts === ts);
      default:
        return undefined;
    }
  }

  #post(args: Arguments, more: Partial<SlackMessage>): Answer {
    const message: SlackMessage = { channel: channelOf(args), ts: this.ts(), ...BOT, text: '', edits: 0, ...more };
    const kept = { ...message, ...contentOf(args), ...(args.thread_ts === undefined ? {} : { thread_ts: args.thread_ts }) };
    this.messages.push(kept);
    return { channel: kept.channel, ts: kept.ts };
  }

  #startStream(args: Arguments): Answer {
    if (args.thread_ts === undefined) throw new SlackError('invalid_thread_ts');
    const isDirect = channelOf(args).startsWith('D');
    if (!isDirect && !args.recipient_team_id) throw new SlackError('missing_recipient_team_id');
    if (!isDirect && !args.recipient_user_id) throw new SlackError('missing_recipient_user_id');
    return this.#post(args, { streaming_state: 'in_progress' });
  }

  #appendStream(args: Arguments): Answer {
    const message = this.#streaming(args);
    this.#grow(message, args.markdown_text ?? '');
    return { channel: message.channel, ts: message.ts };
  }

  #stopStream(args: Arguments): Answer {
    const message = this.#streaming(args);
    if (args.markdown_text !== undefined) this.#grow(message, args.markdown_text);
    if (args.blocks !== undefined) message.blocks = JSON.parse(args.blocks);
    if (args.metadata !== undefined) message.metadata = JSON.parse(args.metadata);
    message.streaming_state = 'completed';
    return { channel: message.channel, ts: message.ts };
  }

  #update(args: Arguments): Answer {
    const message = this.#own(args);
    if (message.streaming_state === 'in_progress') throw new SlackError('streaming_state_conflict');
    Object.assign(message, contentOf(args));
    message.edits++;
    return { channel: message.channel, ts: message.ts };
  }

  #delete(args: Arguments): Answer {
    this.messages.splice(this.messages.indexOf(this.#own(args)), 1);
    return { channel: args.channel, ts: args.ts };
  }

  /** History comes newest first, replies oldest first, as from the platform. */
  #page(args: Arguments, isOf: (message: SlackMessage) => boolean): Answer {
    const { channel, oldest = '0', latest = '9', inclusive, include_all_metadata, limit = '100', cursor = '0' } = args;
    const isWithin = ({ ts }: SlackMessage) =>
      (ts > oldest && ts < latest) || (inclusive === 'true' && (ts === oldest || ts === latest)) || ts === args.ts;
    const found = this.messages.filter((message) => message.channel === channel && isOf(message) && isWithin(message));
    if (args.ts === undefined) found.reverse();
    const end = Number(cursor) + Number(limit);
    const messages = found.slice(Number(cursor), end).map(({ metadata, edits: _, ...message }) => ({
      type: 'message',
      ...message,
      ...(include_all_metadata === 'true' && metadata ? { metadata } : {}),
    }));
    const has_more = end < found.length;
    return { messages, has_more, response_metadata: { next_cursor: has_more ? String(end) : '' } };
  }

  #streaming(args: Arguments): SlackMessage {
    const message = this.#own(args);
    if (message.streaming_state !== 'in_progress') throw new SlackError('message_not_in_streaming_state');
    return message;
  }

  #own(args: Arguments): SlackMessage {
    const message = this.message(channelOf(args), String(args.ts));
    if (message.user !== BOT.user) throw new SlackError('cant_update_message');
    return message;
  }

  #grow(message: SlackMessage, text: string): void {
    if (message.text.length + text.length > MAX_TEXT) throw new SlackError('msg_too_long');
    message.text += text;
  }
}

function channelOf(args: Arguments): string {
  if (!/^[CDG]/.test(args.channel ?? '')) throw new SlackError('channel_not_found');
  return String(args.channel);
}

/** The text is that of the Markdown: rendering is the platform's. */
function contentOf(args: Arguments): Partial<SlackMessage> {
  const given = [args.text, args.markdown_text].filter((text) => text !== undefined);
  if (args.markdown_text !== undefined && (args.text !== undefined || args.blocks !== undefined)) {
    throw new SlackError('markdown_text_conflict');
  }
  const blocks = args.blocks === undefined ? undefined : (JSON.parse(args.blocks) as { type: string; text?: string }[]);
  const text = blocks?.find(({ type }) => type === 'markdown')?.text ?? given[0] ?? '';
  if (text === '') throw new SlackError('no_text');
  if (text.length > MAX_TEXT) throw new SlackError('msg_too_long');
  return {
    text,
    ...(blocks ? { blocks } : {}),
    ...(args.metadata === undefined ? {} : { metadata: JSON.parse(args.metadata) }),
  };
}
