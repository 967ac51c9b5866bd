import { invalidRequest, type ProtocolError, truncate } from '@plugboard/openai-protocol';

/**
 * The response to continue is unknown, another project's or agent's, or no longer kept. The answer
 * is the same for all of these.
 */
export function previousNotFound(id: string): ProtocolError {
  return invalidRequest(`Previous response with id '${truncate(id)}' not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}
