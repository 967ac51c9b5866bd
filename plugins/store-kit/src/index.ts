export { BadRow, readable, tryRow, Unstorable } from './bad-row.js';
export { assertFits, keptBy, keptOptions, type ProjectQuotas, type RowCaps, type StoreLimits } from './kept-options.js';
export { storeLifecycle } from './lifecycle.js';
export { LocalClaims } from './local-claims.js';
export { decodeMessage, decodeMessageList, encodeMessageList, encodeMessages, sizeOf } from './message-json.js';
export { decodeMetadata, encodeMetadata } from './metadata-json.js';
export {
  LAST_KEY,
  MAX_RECORDS,
  PENDING_CALL_TTL,
  RECORD_TTL,
  SMALLEST_TURN,
  surplusOf,
  TOMBSTONE_TTL,
} from './row-limits.js';
export { Sweeper } from './sweeper.js';
