import { statSync } from 'node:fs';
import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import { HostPolicy } from '@plugboard/kernel/contracts';
import type { HttpConfig } from './config.js';
import { assertSize } from './document/read-document.js';
import { DocumentFault } from './errors/errors.js';
import { documentProblem, isUrl, loadOperations } from './load-operations.js';

/** Finds what the schema cannot express, in the options and in a document that is a file. */
export function checkConfig(config: HttpConfig, context: CheckContext): readonly ConfigProblem[] {
  const problems = [...checkBaseUrl(config), ...checkHeaders(config), ...checkHosts(config)];
  return problems.length > 0 || isUrl(config.openapi) ? problems : checkFile(config, context);
}

function checkFile(config: HttpConfig, { readFile, resolvePath }: CheckContext): readonly ConfigProblem[] {
  const { openapi } = config;
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(openapi))
    return [{ path: ['openapi'], message: 'must be a file, or an http or https URL' }];
  try {
    assertSize(statSync(resolvePath(openapi)).size);
    return loadOperations(readFile(openapi), config, () => {}).problems;
  } catch (error) {
    if (error instanceof DocumentFault) return [documentProblem(openapi, error)];
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const reason =
      code === 'ENOENT' ? `the file ${resolvePath(openapi)} does not exist` : `${openapi} cannot be read: ${message}`;
    return [{ path: ['openapi'], message: reason }];
  }
}

function checkBaseUrl({ baseUrl }: HttpConfig): readonly ConfigProblem[] {
  if (baseUrl === undefined) return [];
  const { protocol, username, password } = new URL(baseUrl);
  const message =
    protocol !== 'http:' && protocol !== 'https:'
      ? 'must be an http or https URL'
      : username !== '' || password !== ''
        ? 'must not contain a user or password; send them in `headers`, as `Authorization: Basic …`'
        : undefined;
  return message === undefined ? [] : [{ path: ['baseUrl'], message }];
}

/** Headers that say where a request begins and ends. */
const FRAMING = /^(?:host|content-length|transfer-encoding|connection|upgrade|expect|te|trailer|keep-alive)$/i;

function checkHeaders({ headers }: HttpConfig): readonly ConfigProblem[] {
  const seen = new Set<string>();
  return Object.entries(headers).flatMap(([name, value]) => {
    const isTwice = seen.has(name.toLowerCase());
    seen.add(name.toLowerCase());
    const message = !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)
      ? 'is not the name of a header'
      : FRAMING.test(name)
        ? 'cannot be set: it says where a request begins and ends'
        : isTwice
          ? 'is there twice, in other letters'
          : /[^\t\x20-\x7e\x80-\xff]/.test(value)
            ? 'has characters that a header cannot have, perhaps a line break at its end'
            : undefined;
    return message === undefined ? [] : [{ path: ['headers', name], message }];
  });
}

function checkHosts({ allowPrivate = [] }: HttpConfig): readonly ConfigProblem[] {
  return allowPrivate.flatMap((host, index) =>
    HostPolicy.isHost(host)
      ? []
      : [{ path: ['allowPrivate', index], message: `"${host}" is not a host or host:port, such as localhost:3000` }],
  );
}
