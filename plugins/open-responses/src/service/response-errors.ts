import { invalidRequest, type ProtocolError, truncate } from '@plugboard/openai-protocol';

/**
 * The response to continue is unknown, another project's or agent's, or no longer kept. The error
 * is the same for all of these.
 */
export function previousNotFound(id: string): ProtocolError {
  return invalidRequest(`Previous response with id '${truncate(id)}' not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}

/** The response to continue failed or was cancelled, so its conversation does not contain it. */
export function previousNotCommitted(id: string): ProtocolError {
  return invalidRequest(
    `Previous response with id '${id}' cannot be continued: it failed or was cancelled. Continue the response before it.`,
    { param: 'previous_response_id', code: 'previous_response_not_found' },
  );
}

/** The caller reaches no response with this id. */
export function responseNotFound(id: string): ProtocolError {
  return invalidRequest(`Response with id '${truncate(id)}' not found.`, {
    status: 404,
    param: 'response_id',
    code: 'response_not_found',
  });
}

/** The events to resume from have been dropped. */
export function eventsExpired(id: string): ProtocolError {
  return invalidRequest(`The events of response '${id}' are no longer kept. Get the response itself: GET /v1/responses/${id}.`, {
    status: 410,
    param: 'starting_after',
    code: 'response_events_expired',
  });
}

/**
 * The client claims to have seen an event that does not exist yet.
 *
 * @param last the sequence number of the newest event.
 */
export function eventAhead(after: number, last: number): ProtocolError {
  return invalidRequest(`Invalid 'starting_after': the response has no event ${after} yet; its last one is ${last}.`, {
    param: 'starting_after',
    code: 'invalid_value',
  });
}
