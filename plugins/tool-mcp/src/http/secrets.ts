import { createRedactor } from '@plugboard/kernel';

/** Shorter values are not secrets. */
const MIN_LENGTH = 6;

/** Removes the values of the configured headers, and of the address, from what a server says. */
export function redactorOf(url: URL, headers: Readonly<Record<string, string>>): (text: string) => string {
  const values = Object.values(headers).flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]);
  const parts = [...url.searchParams.values(), url.password].filter((part) => part !== '');
  return createRedactor({ values: [...values, ...parts], minLength: MIN_LENGTH });
}
