import { formatTokens } from '../src/files/token-file.js';
import { digestOf } from '../src/tokens/digest.js';
import type { TokenRecord } from '../src/tokens/token-record.js';

/** A token of the form that is issued, from the design of it. */
export const TOKEN = 'svcp_Hhdwsnbkcrwk3TMPWcGNlJG5fjoL1uic0fS4zk';

/** A record of that token, or of another. */
export function record(fields: Partial<TokenRecord> = {}, token = TOKEN): TokenRecord {
  return {
    id: 'tok_0000000000000001',
    project: 'acme',
    name: 'ci',
    sha256: digestOf(token),
    hint: 'svcp_Hhdw…S4zk',
    scopes: ['chat'],
    createdAt: '2026-01-01T00:00:00.000Z',
    createdBy: 'ops',
    ...fields,
  };
}

/** The text of a tokens file. */
export function fileOf(...records: readonly object[]): string {
  return formatTokens(records as TokenRecord[]);
}
