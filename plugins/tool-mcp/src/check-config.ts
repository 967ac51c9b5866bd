import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { ConfigProblem } from '@plugboard/kernel';
import { HostPolicy } from '@plugboard/kernel/contracts';
import { type AuthConfig, algorithmsOf } from './auth/request-token.js';
import type { McpConfig } from './config.js';
import { checkLaunch } from './process/launch.js';

/** The options that only one form of an entry has. */
const FORMS = {
  command: ['args', 'env', 'cwd', 'user', 'limits', 'node'],
  url: ['headers', 'auth', 'allowPrivate', 'pin', 'acceptedFile'],
} as const satisfies Readonly<Record<'command' | 'url', readonly (keyof McpConfig)[]>>;

/** Finds options that do not belong together, or that this system cannot follow. */
export function checkConfig(config: McpConfig): readonly ConfigProblem[] {
  const { command, url } = config;
  if (command === undefined && url === undefined) {
    return [
      { path: [], message: 'has neither `command` nor `url`: set `command` to run a server, `url` to reach one over HTTP' },
    ];
  }
  if (command !== undefined && url !== undefined) return [{ path: ['url'], message: 'cannot be set together with `command`' }];
  const form = command === undefined ? 'url' : 'command';
  const other = form === 'url' ? 'command' : 'url';
  const misplaced = FORMS[other].filter((name) => config[name] !== undefined);
  return [
    ...misplaced.map((name) => ({ path: [name], message: `is only for entries with \`${other}\`: leave it out` })),
    ...(form === 'command' ? checkLaunch(config) : checkUrl(config)),
  ];
}

function checkUrl({ url = '', headers = {}, auth, allowPrivate = [] }: McpConfig): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const { username, password } = URL.parse(url) ?? { username: '', password: '' };
  if (username !== '' || password !== '') {
    problems.push({ path: ['url'], message: 'has a user or password: set the header `Authorization` in `headers`' });
  }
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]]);
    } catch {
      problems.push({ path: ['headers', name], message: 'is not a valid header: check its name, and its value for line breaks' });
    }
    if (auth && name.toLowerCase() === 'authorization')
      problems.push({ path: ['headers', name], message: 'cannot be set together with `auth`, which sets it' });
  }
  for (const [index, host] of allowPrivate.entries()) {
    const message = `"${host}" is not a host or host:port, such as localhost:3000`;
    if (!HostPolicy.isHost(host)) problems.push({ path: ['allowPrivate', index], message });
  }
  return auth ? [...problems, ...checkAuth(auth)] : problems;
}

function checkAuth({ clientSecret, privateKey, algorithm }: AuthConfig): readonly ConfigProblem[] {
  if (privateKey === undefined) {
    if (clientSecret === undefined) return [{ path: ['auth'], message: 'needs `clientSecret` or `privateKey`' }];
    return algorithm === undefined ? [] : [{ path: ['auth', 'algorithm'], message: 'is only for `privateKey`: leave it out' }];
  }
  if (clientSecret !== undefined)
    return [{ path: ['auth', 'clientSecret'], message: 'cannot be set together with `privateKey`' }];
  const key = keyOf(privateKey);
  const algorithms = key ? algorithmsOf(key) : [];
  if (algorithms.length === 0) {
    const message = 'must be a private key without a password in PEM: of RSA, or of the curve P-256, P-384 or P-521';
    return [{ path: ['auth', 'privateKey'], message }];
  }
  if (algorithm === undefined || algorithms.includes(algorithm)) return [];
  return [{ path: ['auth', 'algorithm'], message: `does not fit the key, which can sign with ${algorithms.join(', ')}` }];
}

function keyOf(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined; // the reason may quote the key
  }
}
