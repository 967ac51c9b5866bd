import { TRANSPORTS } from './test-server.js';

/** The transports of the Responses API beside those of every server. */
export const LIVE_TRANSPORTS = `${TRANSPORTS}  responses: {}
  websocket: {}
  conversations: {}
`;
