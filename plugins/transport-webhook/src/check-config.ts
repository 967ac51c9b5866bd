import { isIP } from 'node:net';
import { checkChannel } from '@plugboard/channel-kit';
import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import type { WebhookConfig } from './config.js';
import { hostOf, ReplyAddresses } from './reply-address.js';
import { secretBytes } from './signatures.js';

/** Finds what the schema cannot express: weak secrets, private addresses, unknown agents. */
export function checkConfig(config: WebhookConfig, context: CheckContext): readonly ConfigProblem[] {
  return [...checkSecrets(config), ...checkAddress(config), ...checkChannel(config, context)];
}

function checkSecrets({ secret }: WebhookConfig): readonly ConfigProblem[] {
  const secrets = typeof secret === 'string' ? [{ secret, path: ['secret'] }] : listed(secret);
  return secrets
    .filter((one) => secretBytes(one.secret) === undefined)
    .map(({ path }) => ({
      path,
      message: 'it must be `whsec_` and 24 to 64 bytes in base64; make one: echo "whsec_$(openssl rand -base64 32)"',
    }));
}

function listed(secrets: readonly string[]) {
  return secrets.map((secret, index) => ({ secret, path: ['secret', index] }));
}

function checkAddress({ replyUrl, allowPrivate }: WebhookConfig): readonly ConfigProblem[] {
  const addresses = new ReplyAddresses(allowPrivate);
  const invalid = addresses.invalid.map((text) => ({
    path: ['allowPrivate', allowPrivate?.indexOf(text) ?? 0],
    message: `"${text}" is neither an address, such as 10.0.0.7, nor a block of them, such as 10.0.0.0/8`,
  }));
  const url = new URL(replyUrl);
  const host = hostOf(url);
  const address = host === 'localhost' ? '127.0.0.1' : host;
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return [...invalid, { path: ['replyUrl'], message: `${url.protocol} is not http or https` }];
  if (isIP(address) === 0 || addresses.allows(address)) return invalid;
  const message = `${host} is a private address; if replies may go there, add it: allowPrivate: [${address}]`;
  return [...invalid, { path: ['replyUrl'], message }];
}
