import type { AgentRuntime } from '@plugboard/kernel/contracts';
import type { InputItem } from '../request/request.js';
import type { LiveResponse } from './live-response.js';

type OtherServers = NonNullable<AgentRuntime['otherServers']>;

/**
 * What a server says first of a response that it runs, as JSON. Its events follow, line by line.
 */
export interface OfferedHead {
  readonly project: string;
  readonly agent: string;
  /** The response at that time, as JSON. */
  readonly response: string;
  readonly input: readonly InputItem[];
  /** The sequence number of the first event that follows. */
  readonly first: number;
}

/** The topic of a response: its id, which nobody guesses. */
export function topicOf(id: string): string {
  return `response:${id}`;
}

/** Offers a response to readers at other servers. @returns withdraws it. */
export function offerResponse(
  response: LiveResponse,
  { project, agent }: Pick<OfferedHead, 'project' | 'agent'>,
  servers: OtherServers,
): () => void {
  return servers.offer(topicOf(response.id), (signal) => {
    const { events, encoder, input = [] } = response;
    const { first } = events;
    const reader = events.join(first, true);
    signal.addEventListener('abort', () => reader?.leave(), { once: true });
    const head: OfferedHead = { project, agent, response: encoder.snapshot(), input, first };
    return textsOf(JSON.stringify(head), reader);
  });
}

async function* textsOf(head: string, reader: ReturnType<LiveResponse['events']['join']>): AsyncGenerator<string> {
  try {
    yield head;
    for (let events = await reader?.next(); events; events = await reader?.next()) yield events.join('\n');
  } finally {
    reader?.leave();
  }
}
