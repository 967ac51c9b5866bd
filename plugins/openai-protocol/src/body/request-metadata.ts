import { RequestValidator } from './request-validator.js';
import { metadata, object } from './schema-parts.js';

type Metadata = Readonly<Record<string, string>>;

const validator = new RequestValidator<{ readonly metadata: Metadata }>(object({ metadata }));

/** Checks the field `metadata`; null counts as empty. @throws ProtocolError 400 */
export function parseMetadata(value: unknown): Metadata {
  return value == null ? {} : validator.check({ metadata: value }).metadata;
}
