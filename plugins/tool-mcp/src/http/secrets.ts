import { createRedactor } from '@plugboard/kernel';
import type { McpConfig } from '../config.js';

/** Shorter values are not secrets. */
const MIN_LENGTH = 6;

/** Removes the secrets of the configuration, and those of the address, from what a server says. */
export function redactorOf(url: URL, { headers = {}, auth }: McpConfig): (text: string) => string {
  const values = Object.values(headers).flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]);
  const parts = [...url.searchParams.values(), url.password].filter((part) => part !== '');
  const { clientId = '', clientSecret, privateKey } = auth ?? {};
  const secrets = clientSecret === undefined ? [] : formsOf(clientId, clientSecret);
  const keys = privateKey === undefined ? [] : [privateKey];
  return createRedactor({ values: [...values, ...parts, ...secrets, ...keys], minLength: MIN_LENGTH });
}

/** A secret as it is sent: in a form, and in the header `Authorization`. */
function formsOf(clientId: string, secret: string): readonly string[] {
  return [secret, encodeURIComponent(secret), Buffer.from(`${clientId}:${secret}`).toString('base64')];
}
