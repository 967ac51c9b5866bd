import { fieldsOf, listOf } from '../base/fields.js';
import type { Account } from '../base/slack.js';
import type { Arrival } from './arrival.js';
import { commandArrival, pressArrival, stopArrival } from './interactions.js';
import { messageArrival } from './messages.js';

/**
 * What a delivery of Slack is for the agent: a message, a command, a press or a stop.
 * @param answerOf the id of the answer that a message streams, if it does.
 * @returns undefined if it is nothing: most events are.
 */
export function arrivalOf(
  delivered: unknown,
  account: Account,
  answerOf: (ts: string) => string | undefined,
): Arrival | undefined {
  const body = fieldsOf(delivered);
  if (body.command !== undefined) return commandArrival(body, account);
  if (body.type === 'block_actions') return pressArrival(body, account);
  // One app may be in many workspaces, and Socket Mode has the events of all.
  const [authorization = {}] = listOf(body.authorizations);
  const installed = authorization.is_enterprise_install === true ? undefined : (authorization.team_id ?? body.team_id);
  if (typeof installed === 'string' && installed !== account.team) return undefined;
  switch (fieldsOf(body.event).type) {
    case 'message':
    case 'app_mention':
      return messageArrival(body, account);
    case 'agent_session_stopped':
      return stopArrival(body, account, answerOf);
    default:
      return undefined;
  }
}
