import {
  checkAgentName,
  emptyArray,
  invalidRequest,
  missingParameter,
  type ProtocolError,
  presentFields,
  RequestValidator,
  wrongType,
} from '@plugboard/openai-protocol';
import { SAMPLING } from './parameters.js';
import type { ResponseRequest } from './request.js';
import { requestSchema } from './request-schema.js';

const validator = new RequestValidator<ResponseRequest>(requestSchema);

const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'prompt',
  ...Object.keys(requestSchema.properties),
  ...Object.keys(SAMPLING),
]);

/**
 * Checks everything in a request that can be checked without knowing which agent answers.
 *
 * @throws ProtocolError 400 for the first fault.
 */
export function parseRequest(body: unknown): ResponseRequest {
  const request = checked(body);
  checkCapabilities(request);
  if (request.generate !== false) checkInput(request);
  return request;
}

function checked(body: unknown): ResponseRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw invalidRequest('We could not parse the JSON body of your request. (HINT: The body must be one JSON object.)');
  }
  const present = presentFields(body, KNOWN_FIELDS);
  const { model } = present;
  if (model !== undefined && typeof model !== 'string') throw wrongType('model', 'a string', model);
  if (model !== undefined) checkAgentName(model, 'model');
  return validator.check(present);
}

/**
 * The same for `POST /v1/responses/compact`.
 *
 * @throws ProtocolError 400 for the first fault.
 */
export function parseCompaction(body: unknown): ResponseRequest {
  const request = checked(body);
  if (request.model === undefined) throw missingParameter('model');
  if (request.previous_response_id === undefined) checkInput(request);
  return request;
}

function checkCapabilities(request: ResponseRequest): void {
  const { background, prompt, previous_response_id, conversation } = request;
  if (background === true) {
    throw unsupported(
      'background',
      "this server does not run responses in the background. Omit 'background'; a stored response continues for 30 s without its client and can be resumed",
    );
  }
  if (prompt !== undefined)
    throw unsupported(
      'prompt',
      "this server has no prompt templates: the prompt of an agent is in the configuration. Omit 'prompt'",
    );
  if (previous_response_id !== undefined && conversation !== undefined) {
    throw invalidRequest("Mutually exclusive parameters: send either 'previous_response_id' or 'conversation'.", {
      param: 'previous_response_id',
    });
  }
}

function checkInput({ input }: ResponseRequest): void {
  if (input === undefined) throw missingParameter('input');
  if (input.length === 0 && typeof input !== 'string') throw emptyArray('input');
}

/** @param why half a sentence that ends with the cure. */
export function unsupported(param: string, why: string): ProtocolError {
  return invalidRequest(`Unsupported parameter: ${why}.`, { param, code: 'unsupported_parameter' });
}
