import { ChatError, type ChatEvent, type ChatTurn, toolName } from './conversation.js';
import { parsed, type ServerClient } from './server-client.js';

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
    readonly usage?: { readonly input_tokens: number; readonly output_tokens: number } | null;
  };
  readonly error?: { readonly message: string };
}

interface ServerItem {
  readonly type: string;
  readonly id?: string;
  readonly server_label?: string;
  readonly name?: string;
  readonly arguments?: string;
  readonly output?: string | null;
  readonly error?: { readonly content?: readonly { readonly text: string }[] } | null;
}

/** Runs a turn over `POST /v1/responses`, which shows the agent's tools. @throws ChatError */
export async function* sendResponse(client: ServerClient, turn: ChatTurn): AsyncGenerator<ChatEvent> {
  const { agent, session, signal } = turn;
  const body = { model: agent, input: inputOf(turn), conversation: session.key, stream: true };
  // If only this chat uses the session, a turn that still runs in it is one that was stopped.
  const headers: Record<string, string> = session.isOwn ? { 'x-session-busy': 'interrupt' } : {};
  const reader = new ResponseReader();
  try {
    for await (const data of client.stream('/responses', body, headers, signal)) {
      yield* reader.read(parsed(data));
    }
  } finally {
    // A stored response runs on without its client, so it is cancelled.
    if (signal.aborted && reader.id !== undefined) await cancel(client, reader.id);
  }
}

function inputOf({ input }: ChatTurn): unknown {
  if (typeof input === 'string') return input;
  return input.map(({ id, approve, reason }) => ({
    type: 'mcp_approval_response',
    approval_request_id: id,
    approve,
    ...(reason !== undefined && { reason }),
  }));
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
        if (item?.type === 'mcp_call') this.#names.set(index, nameOf(item));
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
        if (item?.type === 'mcp_approval_request') yield approvalOf(item);
        break;
      case 'response.incomplete':
        yield { kind: 'cut', reason: response?.incomplete_details?.reason ?? 'unknown' };
        yield* usageOf(response);
        break;
      case 'response.completed':
        yield* usageOf(response);
        break;
      case 'response.failed':
        throw new ChatError(response?.error?.message ?? 'the turn failed');
      case 'error':
        throw new ChatError(event.error?.message ?? 'the turn failed');
    }
  }
}

function nameOf({ server_label = '', name = '' }: ServerItem): string {
  return toolName(server_label, name);
}

function approvalOf(item: ServerItem): ChatEvent {
  return { kind: 'approval', id: item.id ?? '', name: nameOf(item), input: item.arguments ?? '' };
}

function* usageOf(response: ServerEvent['response']): Generator<ChatEvent> {
  const usage = response?.usage;
  if (usage) yield { kind: 'usage', input: usage.input_tokens, output: usage.output_tokens };
}

function resultOf(item: ServerItem): ChatEvent {
  const { output, error } = item;
  const isError = error != null;
  const content = isError ? (error.content ?? []).map(({ text }) => text).join(' ') : (output ?? '');
  return { kind: 'result', name: nameOf(item), content, isError };
}
