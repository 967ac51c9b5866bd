import { type Fields, fieldsOf, listOf, textOf } from '../base/fields.js';
import { ACTION, type Account, type SlackTo } from '../base/slack.js';
import type { Arrival } from './arrival.js';
import { idOf } from './messages.js';

const COMMANDS = ['new', 'stop', 'agent', 'help', 'start'];

/**
 * A slash command: `/new` is the command itself; of any other, such as `/helper`, the text is what
 * is said: a command if its first word is one. @returns undefined if fields are missing.
 */
export function commandArrival(body: Fields, account: Account): Arrival | undefined {
  const channel = textOf(body.channel_id);
  const user = textOf(body.user_id);
  const trigger = textOf(body.trigger_id);
  const command = textOf(body.command);
  if (channel === undefined || user === undefined || trigger === undefined || command === undefined) return undefined;
  const words = (textOf(body.text) ?? '').trim();
  const [first = ''] = words.split(/\s/);
  const isOwn = COMMANDS.includes(command.slice(1));
  const text = isOwn ? `${command} ${words}`.trim() : COMMANDS.includes(first) ? `/${words}` : words || '/help';
  const to: SlackTo = { channel, user, team: account.team };
  return {
    incoming: {
      ids: [`${account.team}/command/${trigger}`],
      chat: channel,
      to,
      sender: { id: user, name: textOf(body.user_name) },
      text,
      isPrivate: channel.startsWith('D'),
      isAddressed: true,
    },
    team: textOf(body.team_id),
    follows: false,
  };
}

/** A press of a button under a message of the bot. @returns undefined if it is another's. */
export function pressArrival(body: Fields, account: Account): Arrival | undefined {
  const [action = {}] = listOf(body.actions);
  const container = fieldsOf(body.container);
  const person = fieldsOf(body.user);
  const channel = textOf(container.channel_id) ?? textOf(fieldsOf(body.channel).id);
  const message = textOf(container.message_ts);
  const user = textOf(person.id);
  const line = textOf(action.value);
  if (channel === undefined || message === undefined || user === undefined || line === undefined) return undefined;
  if (textOf(action.action_id)?.startsWith(ACTION) !== true) return undefined;
  const thread = textOf(container.thread_ts) ?? textOf(fieldsOf(body.message).thread_ts);
  const pressed = textOf(action.action_ts) ?? textOf(body.trigger_id) ?? '';
  const team = textOf(person.team_id);
  const to = { channel, user, team: team ?? account.team, since: message, ...(thread === undefined ? {} : { thread }) };
  return {
    incoming: {
      ids: [`${account.team}/press/${channel}/${message}/${user}/${pressed}`],
      chat: channel,
      thread,
      to,
      sender: { id: user, name: textOf(person.name) ?? textOf(person.username) },
      text: line,
      press: line,
      isPrivate: channel.startsWith('D'),
      isAddressed: true,
    },
    team,
    follows: false,
  };
}

/**
 * The stop button of a thread (`agent_session_stopped`).
 * @param answerOf the id of the answer that a message streams, if it does.
 * @returns undefined if the answers that it ends have ended.
 */
export function stopArrival(body: Fields, account: Account, answerOf: (ts: string) => string | undefined): Arrival | undefined {
  const event = fieldsOf(body.event);
  const channel = textOf(event.channel);
  const thread = textOf(event.thread_ts);
  const user = textOf(event.user);
  if (channel === undefined || thread === undefined || user === undefined) return undefined;
  const streams = Array.isArray(event.streaming_message_ts) ? event.streaming_message_ts.map(String) : [];
  const stops = streams.length === 0 ? true : streams.map(answerOf).find((id) => id !== undefined);
  if (stops === undefined) return undefined;
  return stop({ channel, thread, user, team: account.team }, stops, idOf(body, account));
}

/** Ends an answer, said by a person. */
export function stop(to: SlackTo, stops: string | true, ids: readonly string[]): Arrival {
  const { channel: chat, thread, user } = to;
  const isPrivate = chat.startsWith('D');
  return {
    incoming: { ids, chat, thread, to, sender: { id: user }, text: '', stops, isPrivate, isAddressed: true },
    follows: false,
  };
}
