import { channelOptions, checkChannel, groupsOption } from '@plugboard/channel-kit';
import type { CheckContext, ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    token: {
      type: 'string',
      secret: true,
      minLength: 1,
      description: 'Token of the bot, from @BotFather.',
    },
    ...channelOptions,
    pairing: { ...channelOptions.pairing, default: true },
    groups: groupsOption,
    mode: {
      type: 'string',
      enum: ['polling', 'webhook'],
      default: 'polling',
      description: 'How messages arrive: the entry polls, or Telegram calls `POST /channels/<entry>`.',
    },
    webhookSecret: {
      type: 'string',
      secret: true,
      minLength: 16,
      maxLength: 256,
      description: 'Secret that Telegram sends with each call, `secret_token` of setWebhook. Required with `mode: webhook`.',
    },
    webhookUrl: {
      type: 'string',
      format: 'url',
      description: 'Address under which Telegram reaches the route. With it, the entry calls setWebhook itself.',
    },
    apiRoot: { type: 'string', format: 'url', description: "Address of the Bot API. By default Telegram's." },
  },
  required: ['token', 'agent'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type TelegramOptions = Infer<typeof configSchema>;

const TOKEN = /^[0-9]+:[A-Za-z0-9_-]+$/;
/** What Telegram takes as `secret_token`. */
const SECRET = /^[A-Za-z0-9_-]{16,256}$/;
const SECRET_RULE = '16 to 256 letters, digits, _ and -';

/** Finds mistakes that the schema cannot express. */
export function checkConfig(config: TelegramOptions, context: CheckContext): readonly ConfigProblem[] {
  const { token, mode, webhookSecret, webhookUrl } = config;
  const problems = [...checkChannel(config, context)];
  const add = (path: string, message: string) => problems.push({ path: [path], message });
  if (!TOKEN.test(token)) add('token', 'is not the token of a bot: copy it from @BotFather, with the number before the colon');
  if (webhookSecret !== undefined && !SECRET.test(webhookSecret)) add('webhookSecret', `must have ${SECRET_RULE}`);
  if (mode === 'webhook' && webhookSecret === undefined)
    add('webhookSecret', `is missing; \`mode: webhook\` needs one of ${SECRET_RULE}`);
  if (mode === 'polling' && webhookUrl !== undefined)
    add('webhookUrl', 'has no effect while the entry polls; add `mode: webhook`, or leave it out');
  if (webhookUrl !== undefined && !webhookUrl.startsWith('https:'))
    add('webhookUrl', 'must begin with https: Telegram calls no other');
  return problems;
}
