import { wrongValue } from '@plugboard/openai-protocol';

/** What a client chooses for a connection, in the query of its URL. */
export interface ConnectionQuery {
  /** The agent of requests that name none. */
  readonly model: string | undefined;
  /** Whether the connection is one conversation. */
  readonly isConversation: boolean;
  /** Whether `svc:` events are sent. */
  readonly extensions: boolean;
}

/** @throws ProtocolError 400 for an unknown value. */
export function parseQuery(path: string, query: URLSearchParams): ConnectionQuery {
  const isLive = path === '/v1/live';
  return {
    model: query.get('model') || undefined,
    isConversation: parseSwitch(query, 'conversation', 'connection', isLive),
    extensions: parseSwitch(query, 'events', 'svc', isLive),
  };
}

/** @param on the value that switches it on; `none` switches it off. */
function parseSwitch(query: URLSearchParams, name: string, on: string, byDefault: boolean): boolean {
  const value = query.get(name);
  if (value === null || value === '') return byDefault;
  if (value !== on && value !== 'none') throw wrongValue(name, value, [on, 'none']);
  return value === on;
}
