import type { BusyMode } from '@plugboard/kernel';
import type { HttpRequest } from '@plugboard/transport-http';
import { invalidRequest } from './errors.js';

const BUSY_MODES: readonly BusyMode[] = ['enqueue', 'reject', 'interrupt'];

/** What the caller wants where the session is busy, where it says so. @throws ProtocolError 400 for a word that means nothing. */
export function parseBusyMode({ headers }: Pick<HttpRequest, 'headers'>): BusyMode | undefined {
  const wanted = headers['x-session-busy'];
  if (wanted === undefined || wanted === '') return undefined;
  const mode = BUSY_MODES.find((one) => one === wanted);
  if (mode) return mode;
  throw invalidRequest(`Invalid 'X-Session-Busy'. Supported values are: 'enqueue', 'reject', and 'interrupt'.`, {
    param: 'X-Session-Busy',
    code: 'invalid_value',
  });
}
