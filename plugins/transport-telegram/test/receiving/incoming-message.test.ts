import type { Message, Update } from 'grammy/types';
import t from 'tap';
import { incomingMessage, incomingPress } from '../../src/receiving/incoming-message.js';
import { BOT } from '../support/telegram-server.js';
import { ANN, BEN, FORUM, GROUP, messageOf, pressOf } from '../support/updates.js';

const read = (fields: Partial<Message>) => incomingMessage({ update_id: 7, ...messageOf(fields) } as Update, BOT);

t.test('takes a message of a private chat', async (t) => {
  const message = read({ text: 'Hello', message_id: 31 });
  t.match(message, {
    ids: ['4711/update/7', '4711/message/101/31'],
    chat: '101',
    to: { chat: 101 },
    id: '31',
    sender: { id: '101', name: 'Ann Lee' },
    text: 'Hello',
    isPrivate: true,
    isAddressed: true,
  });
  t.equal(message?.thread, undefined);
  t.equal(message?.unsupported, undefined);
});

t.test('TG-9 takes no other kind of update', async (t) => {
  const { message } = messageOf({ text: 'Hello' });
  const kinds = [
    'edited_message',
    'channel_post',
    'edited_channel_post',
    'business_message',
    'edited_business_message',
    'guest_message',
    'a_kind_of_next_year',
  ];
  for (const kind of kinds)
    t.equal(incomingMessage({ update_id: 7, [kind]: message } as unknown as Update, BOT), undefined, kind);
});

t.test('TG-9 takes nothing of channels, anonymous admins and bots', async (t) => {
  const anonymous = { id: 1087968824, is_bot: true, first_name: 'Group', username: 'GroupAnonymousBot' };
  const channel = { id: -1_000_000_000_001, type: 'channel', title: 'News' } as const;
  const telegram = { id: 777000, is_bot: false, first_name: 'Telegram' };
  t.equal(read({ text: 'a', chat: GROUP, from: anonymous, sender_chat: GROUP }), undefined, 'an anonymous admin');
  t.equal(
    read({ text: 'a', chat: GROUP, from: telegram, sender_chat: channel, is_automatic_forward: true }),
    undefined,
    'a post',
  );
  t.equal(read({ text: 'a', chat: channel, sender_chat: channel }), undefined, 'a channel');
  t.equal(read({ text: 'a', from: { ...BEN, is_bot: true } }), undefined, 'a bot');
  const { message } = messageOf({ text: 'a' });
  const { from: _, ...unsigned } = message;
  t.equal(incomingMessage({ update_id: 7, message: unsigned } as Update, BOT), undefined, 'no sender');
});

t.test('TG-9 a forwarded post is a message of who forwards it', async (t) => {
  const origin = { type: 'channel', date: 1, message_id: 5, chat: { id: -100, type: 'channel', title: 'News' } } as const;
  t.match(read({ text: 'News', forward_origin: origin }), { sender: { id: '101' }, text: 'News' });
});

t.test('TG-9 a press is the line of its button, by who pressed', async (t) => {
  t.match(incomingPress({ update_id: 7, ...pressOf('approve K7M2QX', BEN, GROUP) } as Update, BOT), {
    chat: '-500',
    sender: { id: '102' },
    press: 'approve K7M2QX',
    isPrivate: false,
    isAddressed: true,
  });
  const { callback_query } = pressOf('x');
  const read = (fields: object) =>
    incomingPress({ update_id: 7, callback_query: { ...callback_query, ...fields } } as Update, BOT);
  t.equal(read({ message: undefined }), undefined, 'a button of an inline message');
  t.equal(read({ data: undefined, game_short_name: 'chess' }), undefined, 'a button of a game');
});

t.test('service messages are left out', async (t) => {
  t.equal(read({ chat: GROUP, new_chat_members: [BEN] }), undefined);
  t.equal(read({ chat: GROUP, new_chat_title: 'Other' }), undefined);
  t.equal(read({ chat: FORUM, forum_topic_created: { name: 'Topic', icon_color: 0x6fb9f0 } }), undefined);
});

t.test('CH-7 in a group, a message is addressed if it mentions the bot, replies to it or is a command', async (t) => {
  const fromBot = messageOf({ text: 'Answer', chat: GROUP, from: BOT }).message;
  const cases: readonly (readonly [Partial<Message>, isAddressed: boolean, text?: string])[] = [
    [{ text: 'Hello all' }, false],
    [{ text: '@PlugBot, what is up?' }, true, 'what is up?'],
    [{ text: 'Ask @plugbot about it' }, true, 'Ask @plugbot about it'],
    [{ text: '@PlugBot' }, true, '@PlugBot'],
    [{ text: '@PlugBotter hello' }, false],
    [{ text: 'mail@PlugBot' }, false],
    [{ text: '/new' }, true, '/new'],
    [{ text: '/new@PlugBot' }, true, '/new'],
    [{ text: '/Agent@plugbot helper' }, true, '/Agent helper'],
    [{ text: '/weather' }, false],
    [{ text: '/weather@PlugBot' }, true, '/weather'],
    [{ text: '/new@OtherBot' }, false],
    [{ text: '@PlugBot approve K7M2QX' }, true, 'approve K7M2QX'],
    [{ text: 'And then?', reply_to_message: fromBot as never }, true, 'And then?'],
    [{ text: 'Plug, hello', entities: [{ type: 'text_mention', offset: 0, length: 4, user: BOT }] }, true, 'hello'],
  ];
  for (const [fields, isAddressed, text] of cases) {
    const message = read({ chat: GROUP, ...fields });
    t.equal(message?.isAddressed, isAddressed, fields.text ?? '');
    if (text !== undefined) t.equal(message?.text, text);
    t.equal(message?.isPrivate, false);
  }
});

t.test('TG-8 a topic is a thread; no other message thread is', async (t) => {
  t.match(read({ chat: FORUM, text: 'a', is_topic_message: true, message_thread_id: 9 }), {
    thread: '9',
    to: { chat: FORUM.id, thread: 9 },
  });
  const reply = read({ chat: { ...FORUM, is_forum: undefined } as never, text: 'a', message_thread_id: 9 });
  t.strictSame([reply?.thread, reply?.to.thread], [undefined, undefined], 'a thread of replies');
  const general = read({ chat: FORUM, text: 'a' });
  t.strictSame([general?.thread, general?.to.thread], [undefined, undefined], 'General');
});

t.test('the message that began a topic is neither replied to nor quoted', async (t) => {
  const began = messageOf({ chat: FORUM, from: BOT, forum_topic_created: { name: 'Topic', icon_color: 0x6fb9f0 } }).message;
  const message = read({
    chat: FORUM,
    text: 'a',
    is_topic_message: true,
    message_thread_id: 9,
    reply_to_message: began as never,
  });
  t.strictSame([message?.isAddressed, message?.quoted], [false, undefined]);
});

t.test('quotes a message of somebody else that is replied to', async (t) => {
  const of = (from: Message['from'], more: object = {}) =>
    messageOf({ text: 'The bill is due', chat: GROUP, from, ...more }).message as never;
  t.equal(read({ chat: GROUP, text: 'When?', reply_to_message: of(BEN) })?.quoted, 'The bill is due');
  t.equal(read({ chat: GROUP, text: 'When?', reply_to_message: of(ANN) })?.quoted, undefined, 'an own message');
  t.equal(read({ chat: GROUP, text: 'When?', reply_to_message: of(BOT) })?.quoted, undefined, 'an answer of the bot');
  const quote = { text: 'due', position: 12 };
  t.equal(read({ chat: GROUP, text: 'When?', reply_to_message: of(BEN), quote })?.quoted, 'due', 'a part of it');
  const photo = of(BEN, { text: undefined, caption: 'A bill' });
  t.equal(read({ chat: GROUP, text: 'When?', reply_to_message: photo })?.quoted, 'A bill');
});

t.test('images are taken, and anything else has a name', async (t) => {
  const size = (file_id: string, file_size: number) => ({ file_id, file_unique_id: file_id, width: 9, height: 9, file_size });
  const file = (mime_type: string, file_size: number) => ({ file_id: 'f', file_unique_id: 'f', mime_type, file_size });
  const taken = (fields: Partial<Message>) => {
    const { images, unsupported } = read(fields) ?? {};
    return unsupported ?? images;
  };
  t.strictSame(taken({ photo: [size('small', 10), size('large', 9_000_000)] }), [{ file: 'large' }]);
  t.strictSame(taken({ photo: [size('small', 10), size('huge', 20_000_000)] }), [{ file: 'small' }]);
  t.strictSame(taken({ document: file('image/webp', 10) }), [{ file: 'f' }]);
  t.equal(taken({ document: file('image/png', 50_000_000) }), 'an image over 10 MB');
  t.equal(taken({ document: file('application/zip', 50_000_000) }), 'a file');
  const named = {
    voice: 'a voice message',
    video: 'a video',
    sticker: 'a sticker',
    location: 'a location',
    poll: 'a poll',
    dice: 'a die',
    contact: 'a contact',
  };
  for (const [kind, name] of Object.entries(named)) t.equal(taken({ [kind]: {} }), name);
  const animation = { ...file('video/mp4', 10), width: 1, height: 1, duration: 1 };
  t.equal(taken({ animation, document: animation }), 'an animation');
  t.equal(taken({ video: {} as never, caption: 'Look' }), 'a video', 'with a caption, too');
});
