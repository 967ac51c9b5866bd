import type { SchemaMistake } from '@plugboard/kernel/contracts';
import {
  checkAgentName,
  invalidRequest,
  logitBiasOutOfRange,
  type ProtocolError,
  presentFields,
  RequestValidator,
  schemaErrorToProtocol,
  unsupportedValue,
} from '@plugboard/openai-protocol';
import type { CompletionRequest } from './request.js';
import { requestSchema } from './request-schema.js';

const validator = new RequestValidator<CompletionRequest>(requestSchema);

const KNOWN_FIELDS: ReadonlySet<string> = new Set(['model', ...Object.keys(requestSchema.properties)]);

/**
 * Checks everything in a body that does not depend on the agent.
 *
 * @throws ProtocolError 400 for the first problem: first `model`, then schema errors in schema
 *   order,
 * then unsupported values.
 */
export function parseRequest(body: unknown): CompletionRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw malformedBody();
  const present = presentFields(body, KNOWN_FIELDS);
  checkModel(present.model);
  const request = validator.check(present, schemaError);
  checkCapabilities(request);
  return request;
}

function schemaError(mistake: SchemaMistake): ProtocolError {
  const { path, keyword, data } = mistake;
  const isLogitBias = path[0] === 'logit_bias' && path.length > 1 && (keyword === 'minimum' || keyword === 'maximum');
  return isLogitBias ? logitBiasOutOfRange(Number(data)) : schemaErrorToProtocol(mistake);
}

function checkModel(model: unknown): void {
  if (model === undefined || model === '') throw invalidRequest('you must provide a model parameter');
  if (typeof model !== 'string') throw malformedBody();
  checkAgentName(model, 'model');
}

function checkCapabilities({ n, stream, stream_options, modalities, audio }: CompletionRequest): void {
  if (n !== undefined && n !== 1) {
    throw unsupportedValue(
      'n',
      `Unsupported value: 'n' does not support ${n} with this model. Only the default (1) value is supported.`,
    );
  }
  if (stream_options !== undefined && stream !== true) {
    throw invalidRequest("The 'stream_options' parameter is only allowed when 'stream' is enabled.", { param: 'stream_options' });
  }
  if (!modalities?.includes('audio')) return;
  if (audio !== undefined) {
    throw invalidRequest("Unsupported parameter: 'audio' is not supported with this model: it answers in text only.", {
      param: 'audio',
      code: 'unsupported_parameter',
    });
  }
  throw unsupportedValue(
    'modalities',
    "Unsupported value: 'modalities' does not support 'audio' with this model. Only ['text'] is supported.",
  );
}

function malformedBody(): ProtocolError {
  return invalidRequest(
    'We could not parse the JSON body of your request. (HINT: This likely means that the body is not a JSON object, or that its `model` is not a string.)',
  );
}
