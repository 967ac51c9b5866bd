import type { Account } from '../base/slack.js';
import { failureOf, TOKEN_ERRORS } from './call-failure.js';
import type { WebClient } from './web-client.js';

/** Asks Slack whose token it is. @throws Error with the cause and the cure. */
export async function identify(client: WebClient): Promise<Account> {
  try {
    const { team_id, team, enterprise_id, user_id, user, bot_id } = await client.auth.test();
    if (!team_id || !user_id || !bot_id) throw new Error('botToken is the token of a person: use the Bot User OAuth Token');
    return { team: team_id, teamName: team ?? team_id, enterprise: enterprise_id, user: user_id, name: user ?? user_id };
  } catch (error) {
    throw refusalOf(error, 'botToken', 'use the Bot User OAuth Token of the installed app');
  }
}

/** The error for a call that a token of the options begins. */
export function refusalOf(error: unknown, option: string, cure: string): Error {
  const { code, reason } = failureOf(error);
  if (TOKEN_ERRORS.includes(code)) return new Error(`Slack refuses ${option} (${code}): ${cure}`);
  return new Error(code === 'missing_scope' ? `${option} lacks a scope: ${cure}` : reason);
}
