import { checkChannel } from '@plugboard/channel-kit';
import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import type { SlackConfig } from './config.js';

/** Finds what the schema cannot express: exchanged tokens, no way to receive, unknown agents. */
export function checkConfig(config: SlackConfig, context: CheckContext): readonly ConfigProblem[] {
  return [...checkTokens(config), ...checkReceiving(config), ...checkChannel(config, context)];
}

function checkTokens({ botToken, appToken }: SlackConfig): readonly ConfigProblem[] {
  const bot = /^(?:xoxe\.)?xoxb-/.test(botToken)
    ? []
    : [{ path: ['botToken'], message: 'the Bot User OAuth Token begins with xoxb-' }];
  const isApp = appToken === undefined || appToken.startsWith('xapp-');
  return isApp ? bot : [...bot, { path: ['appToken'], message: 'an app-level token begins with xapp-' }];
}

function checkReceiving({ appToken, signingSecret }: SlackConfig): readonly ConfigProblem[] {
  if ((appToken === undefined) !== (signingSecret === undefined)) return [];
  const what =
    appToken === undefined
      ? 'set appToken (Socket Mode) or signingSecret (HTTP)'
      : 'appToken and signingSecret exclude each other';
  return [{ path: [], message: what }];
}
