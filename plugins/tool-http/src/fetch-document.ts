import { ConfigFault } from '@plugboard/kernel';
import type { HostPolicy } from '@plugboard/kernel/contracts';
import { assertSize, MAX_DOCUMENT } from './document/read-document.js';
import { DocumentFault } from './errors/errors.js';
import { readBody } from './exchange/read-body.js';
import { send } from './exchange/send.js';
import { documentProblem } from './load-operations.js';

/**
 * Fetches a document. The operator's headers are for the API, and do not go with it.
 *
 * @throws ConfigFault if it is too large, Error if it cannot be fetched.
 */
export async function fetchDocument(openapi: string, addresses: HostPolicy, signal: AbortSignal): Promise<string> {
  const url = new URL(openapi);
  const headers = { accept: 'application/json, application/yaml, */*;q=0.5', 'user-agent': 'plugboard' };
  const request = { method: 'GET', server: url, target: `${url.pathname}${url.search}`, headers, body: undefined };
  const response = await send(request, addresses, true, signal);
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`${url.origin} answered ${response.statusCode} for the OpenAPI document`);
  }
  const { bytes, isCut } = await readBody(response, MAX_DOCUMENT);
  try {
    assertSize(bytes.length + (isCut ? 1 : 0));
  } catch (error) {
    throw error instanceof DocumentFault ? new ConfigFault([documentProblem(openapi, error)]) : error;
  }
  return bytes.toString();
}
