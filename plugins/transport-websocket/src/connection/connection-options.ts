import { wrongValue } from '@plugboard/openai-protocol';

/** What a client chooses for a connection, in the query of its URL. */
export interface ConnectionOptions {
  /** The agent of requests that name none. */
  readonly model: string | undefined;
  /** Whether the connection is one conversation. */
  readonly isConversation: boolean;
  /** Whether `svc:` events are sent. */
  readonly extensions: boolean;
}

/** @throws ProtocolError 400 for an unknown value. */
export function connectionOptions(path: string, query: URLSearchParams): ConnectionOptions {
  const isLive = path === '/v1/live';
  return {
    model: query.get('model') || undefined,
    isConversation: choice(query, 'conversation', 'connection', isLive),
    extensions: choice(query, 'events', 'svc', isLive),
  };
}

function choice(query: URLSearchParams, name: string, on: string, otherwise: boolean): boolean {
  const value = query.get(name);
  if (value === null || value === '') return otherwise;
  if (value !== on && value !== 'none') throw wrongValue(name, value, [on, 'none']);
  return value === on;
}
