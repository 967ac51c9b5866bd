import type { BusyMode } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';
import { BUSY_MODES, busyModeOf } from '@plugboard/turn-routes';
import { invalidRequest } from '../errors/errors.js';
import { quotedList } from '../errors/request-errors.js';

/** Parses the header `X-Session-Busy`: see `busyModeOf`. @throws ProtocolError 400 */
export function parseBusyMode(request: Pick<HttpRequest, 'headers'>): BusyMode | undefined {
  return busyModeOf(request, (param) =>
    invalidRequest(`Invalid '${param}'. Supported values are: ${quotedList(BUSY_MODES)}.`, { param, code: 'invalid_value' }),
  );
}
