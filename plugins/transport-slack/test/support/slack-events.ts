import { TEAM } from './slack-server.js';

let count = 0;

/** The callback of an event, as the platform sends it. Each has an id of its own. */
export function eventOf(event: Readonly<Record<string, unknown>>, more: Readonly<Record<string, unknown>> = {}): object {
  count++;
  return {
    type: 'event_callback',
    team_id: TEAM,
    api_app_id: 'A1',
    event: { event_ts: event.ts, ...event },
    event_id: `Ev${count}`,
    event_time: 1790000000,
    authorizations: [{ enterprise_id: null, team_id: TEAM, user_id: 'UBOT', is_bot: true, is_enterprise_install: false }],
    ...more,
  };
}

/** A message of a person, in a direct message if the channel begins with `D`. */
export function messageOf(channel: string, ts: string, text: string, more: Readonly<Record<string, unknown>> = {}): object {
  const channel_type = channel.startsWith('D') ? 'im' : 'channel';
  return eventOf({ type: 'message', channel, channel_type, user: 'U1', team: TEAM, text, ts, ...more });
}

/** The same as the mention of the bot that comes besides. */
export function mentionOf(channel: string, ts: string, text: string, more: Readonly<Record<string, unknown>> = {}): object {
  return eventOf({ type: 'app_mention', channel, user: 'U1', team: TEAM, text, ts, ...more });
}

export function commandOf(channel: string, command: string, text = ''): Readonly<Record<string, string>> {
  count++;
  const channel_name = channel.startsWith('D') ? 'directmessage' : 'general';
  return {
    token: 'old',
    team_id: TEAM,
    team_domain: 'work',
    channel_id: channel,
    channel_name,
    user_id: 'U1',
    user_name: 'ann',
    command,
    text,
    api_app_id: 'A1',
    is_enterprise_install: 'false',
    response_url: 'https://hooks.example.com/1',
    trigger_id: `${count}.1.abc`,
  };
}

/** A press of a button of a message of the bot. */
export function pressOf(channel: string, ts: string, value: string, more: Readonly<Record<string, unknown>> = {}): object {
  count++;
  return {
    type: 'block_actions',
    team: { id: TEAM, domain: 'work' },
    user: { id: 'U1', username: 'ann', name: 'ann', team_id: TEAM },
    api_app_id: 'A1',
    container: { type: 'message', message_ts: ts, channel_id: channel, is_ephemeral: false, ...more },
    channel: { id: channel, name: channel.startsWith('D') ? 'directmessage' : 'general' },
    message: { type: 'message', user: 'UBOT', ts, text: '…', ...more },
    trigger_id: `${count}.2.abc`,
    response_url: 'https://hooks.example.com/2',
    actions: [
      {
        type: 'button',
        action_id: 'plugboard_line_0',
        block_id: 'b',
        value,
        action_ts: `1790000001.${String(count).padStart(6, '0')}`,
      },
    ],
  };
}
