import type { BusyMode } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';
import { invalidRequest } from '../errors/errors.js';

const BUSY_MODES: readonly BusyMode[] = ['enqueue', 'reject', 'interrupt'];

/**
 * Parses `X-Session-Busy`: what to do if the session is busy.
 *
 * @throws ProtocolError 400 for an unknown value.
 */
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
