import { createRedactor } from '@plugboard/kernel';

const MIN_LENGTH = 6;
/** Headers whose values are secret by their name. */
const CREDENTIAL = /auth|cookie|credential|key|pass|secret|session|sign|token/i;
/** Text that is only random: letters and digits, too long for a word. */
const RANDOM = /^(?=.*[0-9])(?=.*[A-Za-z])[\w+/=~.-]{20,200}$/;

/**
 * Removes the operator's credentials from a text: an API may send back what it received. Values
 * that are not credentials, such as that of `Accept`, stay, because answers contain them as well.
 *
 * @param query that of `baseUrl`.
 */
export function redactorOf(headers: Readonly<Record<string, string>>, query: URLSearchParams): (text: string) => string {
  const all = [...Object.entries(headers), ...query];
  const secrets = all
    .filter(([name, value]) => CREDENTIAL.test(name) || RANDOM.test(value))
    .flatMap(([, value]) => partsOf(value));
  return createRedactor({ values: secrets, minLength: MIN_LENGTH });
}

/** The value, and what follows its scheme: `Bearer …`. A user and password are also plain. */
function partsOf(value: string): readonly string[] {
  const [scheme = '', ...rest] = value.split(' ');
  const credential = rest.join(' ').trim();
  if (credential === '') return [value, encodeURIComponent(value)];
  const plain = scheme.toLowerCase() === 'basic' ? Buffer.from(credential, 'base64').toString() : '';
  return [value, credential, plain, plain.slice(plain.indexOf(':') + 1)];
}
