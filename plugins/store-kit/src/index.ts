export { BadRow, tryRow, Unstorable } from './bad-row.js';
export { LocalClaims } from './local-claims.js';
export { decodeMessage, decodeMessageList, encodeMessageList, encodeMessages, sizeOf } from './message-json.js';
export { decodeMetadata, encodeMetadata } from './metadata-json.js';
export { Sweeper } from './sweeper.js';
