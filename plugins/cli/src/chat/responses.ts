import { ChatError, type ChatEvent } from './conversation.js';
import type { ServerClient } from './server-client.js';

/** Milliseconds that the server has to cancel a response. */
const MAX_CANCEL_TIME = 5_000;

interface ServerEvent {
  readonly type: string;
  readonly output_index?: number;
  readonly delta?: string;
  readonly arguments?: string;
  readonly item?: ServerItem;
  readonly response?: {
    readonly id: string;
    readonly incomplete_details?: { readonly reason: string } | null;
    readonly error?: { readonly message: string } | null;
  };
  readonly error?: { readonly message: string };
}

interface ServerItem {
  readonly type: string;
  readonly name?: string;
  readonly output?: string | null;
  readonly error?: { readonly content?: readonly { readonly text: string }[] } | null;
}

/** A message to an agent. */
export interface ChatTurn {
  readonly agent: string;
  /** The key of the session. */
  readonly session: string;
  readonly text: string;
  readonly signal: AbortSignal;
}

/**
 * Runs a turn over `POST /v1/responses`, which shows the agent's tools as they run.
 *
 * @throws ChatError
 */
export async function* sendResponse(client: ServerClient, { agent, session, text, signal }: ChatTurn): AsyncGenerator<ChatEvent> {
  const body = { model: agent, input: text, conversation: session, stream: true };
  const reader = new ResponseReader();
  try {
    // Only this chat uses the session: a turn that still runs in it is one that was stopped.
    for await (const data of client.stream('/responses', body, { 'x-session-busy': 'interrupt' }, signal)) {
      yield* reader.read(JSON.parse(data));
    }
  } finally {
    // A stored response runs on without its client, so it is cancelled.
    if (signal.aborted && reader.id !== undefined) await cancel(client, reader.id);
  }
}

async function cancel(client: ServerClient, id: string): Promise<void> {
  try {
    await client.post(`/responses/${id}/cancel`, {}, AbortSignal.timeout(MAX_CANCEL_TIME));
  } catch {
    // The next turn interrupts it, if it has not ended by then.
  }
}

/** Translates the events of one response to those of the chat. */
class ResponseReader {
  /** The response's id, once it is known. */
  id: string | undefined;
  /** The names of tool calls, by output index. */
  readonly #names = new Map<number, string>();
  #hasText = false;

  *read(event: ServerEvent): Generator<ChatEvent> {
    const { type, item, response, output_index: index = 0 } = event;
    switch (type) {
      case 'response.created':
        this.id = response?.id;
        break;
      case 'response.output_item.added':
        if (item?.type === 'mcp_call') this.#names.set(index, item.name ?? '');
        if (item?.type === 'message' && this.#hasText) yield { kind: 'text', text: '\n\n' };
        break;
      case 'response.output_text.delta':
        this.#hasText = true;
        yield { kind: 'text', text: event.delta ?? '' };
        break;
      case 'response.mcp_call_arguments.done':
        this.#hasText = false;
        yield { kind: 'call', name: this.#names.get(index) ?? '', input: event.arguments ?? '' };
        break;
      case 'response.output_item.done':
        if (item?.type === 'mcp_call') yield resultOf(item);
        break;
      case 'response.incomplete':
        yield { kind: 'cut', reason: response?.incomplete_details?.reason ?? 'unknown' };
        break;
      case 'response.failed':
        throw new ChatError(response?.error?.message ?? 'the turn failed');
      case 'error':
        throw new ChatError(event.error?.message ?? 'the turn failed');
    }
  }
}

function resultOf({ output, error }: ServerItem): ChatEvent {
  const isError = error != null;
  const content = isError ? (error.content ?? []).map(({ text }) => text).join(' ') : (output ?? '');
  return { kind: 'result', content, isError };
}
