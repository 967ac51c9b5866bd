import { ASSISTANT, TRANSPORTS } from './test-server.js';

/** The transports of the Responses API beside those of every server. */
export const LIVE_TRANSPORTS = `${TRANSPORTS}  responses: {}
  websocket: {}
  conversations: {}
`;

/** One agent behind them. @param options of the WebSockets, as YAML. */
export function liveConfig(options = '{}', more: string = ASSISTANT): string {
  return LIVE_TRANSPORTS.replace('websocket: {}', `websocket: ${options}`) + more;
}
