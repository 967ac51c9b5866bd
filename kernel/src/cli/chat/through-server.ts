import { systemIds } from '../../host/base/ambient.js';
import { ChatError, type Conversation, type Heard } from './conversation.js';

/**
 * An agent behind a running server, over chat completions. Its tool calls are the server's own affair there, so they are not shown.
 *
 * @param address `http://127.0.0.1:8080`, with or without `/v1`.
 * @param name the agent's name; where it is absent, the first one that the server lists.
 * @param token sent as bearer token, where the server asks for one.
 * @throws ChatError where the server cannot be reached, or refuses.
 */
export async function talkThroughServer(
  address: string,
  name: string | undefined,
  token: string | undefined,
): Promise<Conversation> {
  const base = baseOf(address);
  const headers = { 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  const agent = name ?? (await firstAgent(base, headers));
  const session = `chat-${systemIds.base62(12)}`;

  return {
    agent,
    async *say(text, signal) {
      const body = JSON.stringify({
        model: agent,
        messages: [{ role: 'user', content: text }],
        session_id: session,
        stream: true,
      });
      const answer = await ask(`${base}/chat/completions`, { method: 'POST', headers, body, signal });
      if (!answer.body) throw new ChatError('the server sent no answer');
      let ended = false;
      for await (const data of eventsOf(answer.body)) {
        if (data === '[DONE]') {
          ended = true;
          break;
        }
        yield* hear(data);
      }
      if (!ended) throw new ChatError('the server broke off in the middle of its answer');
    },
    close: async () => {},
  };
}

function baseOf(address: string): string {
  const whole = /^https?:\/\//.test(address) ? address : `http://${address}`;
  if (!URL.canParse(whole)) throw new ChatError(`"${address}" is no address; one is http://127.0.0.1:8080`);
  const plain = whole.replace(/\/+$/, '');
  return plain.endsWith('/v1') ? plain : `${plain}/v1`;
}

async function firstAgent(base: string, headers: Record<string, string>): Promise<string> {
  const answer = await ask(`${base}/models`, { headers });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  const [first] = data;
  if (!first) throw new ChatError(`${base} lists nobody to talk to`);
  return first.id;
}

async function ask(url: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    const cause = (error as Error).cause;
    throw new ChatError(
      `cannot reach ${url}: ${cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : (error as Error).message}`,
    );
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  throw new ChatError(`the server answered ${answer.status}: ${messageOf(text)}`);
}

/** The payloads of a stream of Server-Sent Events, as this protocol sends them: each on one `data:` line. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) yield line.slice(6).trimEnd();
  }
}

function* hear(data: string): Generator<Heard> {
  const chunk = JSON.parse(data) as {
    error?: { message: string };
    choices?: { delta: { content?: string | null }; finish_reason: string | null }[];
  };
  if (chunk.error) throw new ChatError(chunk.error.message);
  const choice = chunk.choices?.[0];
  if (choice?.delta.content) yield { kind: 'text', text: choice.delta.content };
  if (choice?.finish_reason && choice.finish_reason !== 'stop') yield { kind: 'cut', reason: choice.finish_reason };
}

function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: string } };
    return error?.message ?? text;
  } catch {
    return text;
  }
}
