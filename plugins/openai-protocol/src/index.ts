export { presentFields } from './body/present-fields.js';
export { type JsonObject, optionalString, requireField, requireObject, requireString } from './body/request-fields.js';
export { parseMetadata } from './body/request-metadata.js';
export { RequestValidator } from './body/request-validator.js';
export * as schema from './body/schema-parts.js';
export { type ErrorBody, invalidRequest, ProtocolError, serviceError, unavailable } from './errors/errors.js';
export { formatError, protocolCode } from './errors/format-error.js';
export { asProtocolError, protocolRoute } from './errors/protocol-route.js';
export {
  arrayTooLong,
  emptyArray,
  invalidValue,
  logitBiasOutOfRange,
  missingParameter,
  truncate,
  unsupportedPart,
  wrongType,
  wrongValue,
} from './errors/request-errors.js';
export { schemaErrorToProtocol, unsupportedValue } from './errors/schema-error.js';
export { isTemporary, messageWithWait, turnFailureError } from './errors/turn-failure.js';
export { listOptions } from './pages/list-options.js';
export { listQueryOf, singleValue } from './pages/list-query.js';
export { Page } from './pages/page.js';
export { claimError } from './turn/claim-error.js';
export { checkAgentName, resolveAgent } from './turn/resolve-agent.js';
export { parseSessionKey } from './turn/session-key.js';
