import type { ConfigProblem } from '@plugboard/kernel';
import type { McpConfig } from './config.js';
import { checkLaunch } from './process/launch.js';

/** The options that only one form of an entry has. */
const FORMS = {
  command: ['args', 'env', 'cwd', 'user', 'limits', 'node'],
  url: ['headers'],
} as const satisfies Readonly<Record<'command' | 'url', readonly (keyof McpConfig)[]>>;

/** Finds options that do not belong together, or that this system cannot follow. */
export function checkConfig(config: McpConfig): readonly ConfigProblem[] {
  const { command, url, headers = {} } = config;
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
    ...(form === 'command' ? checkLaunch(config) : checkUrl(url, headers)),
  ];
}

function checkUrl(url = '', headers: Readonly<Record<string, string>>): readonly ConfigProblem[] {
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
  }
  return problems;
}
