/** What a client saw of one turn, in the end. */
export type ClientOutcome =
  | { readonly saw: 'end'; readonly text: string }
  | { readonly saw: 'refusal'; readonly status: number }
  | { readonly saw: 'nothing' };

export interface Send {
  readonly url: string;
  readonly agent: string;
  /** None: it is stateless. */
  readonly session?: string | undefined;
  readonly text: string;
  /** Streamed, or answered in one body. */
  readonly stream: boolean;
  /** The Idempotency-Key, where the request has one. */
  readonly key?: string | undefined;
  /** Ends the wait for an answer. */
  readonly signal?: AbortSignal;
  /** Told of all that has come so far, whenever more of a stream comes. */
  readonly onMore?: (received: string) => void;
}

/**
 * The end of an answer in a stream: from then on a client may rely on the turn being
 * kept, whether or not `[DONE]` comes after it.
 */
const FINISH = /"finish_reason":"stop"/;

/**
 * Sends one turn, and returns what came back: a server that dies meanwhile is not an error here.
 * @throws where an answer ends well and with an error at once.
 */
export async function send({ url, agent, session, text, stream, key, signal, onMore }: Send): Promise<ClientOutcome> {
  let received = '';
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
      body: JSON.stringify({ model: agent, stream, session_id: session, messages: [{ role: 'user', content: text }] }),
      ...(signal && { signal }),
    });
    if (response.status !== 200) return { saw: 'refusal', status: response.status };
    if (!stream) return { saw: 'end', text: answerOf(await response.json()) };
    for await (const piece of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      received += piece;
      onMore?.(received);
    }
  } catch {
    // The connection broke off; what came before that counts.
  }
  const hasFailed = received.includes('"error":');
  if (!FINISH.test(received)) return hasFailed ? { saw: 'refusal', status: 200 } : { saw: 'nothing' };
  if (hasFailed) throw new Error(`an answer and an error in one: ${received}`);
  return { saw: 'end', text: textOf(received) };
}

function answerOf(body: unknown): string {
  return (body as { choices: [{ message: { content: string } }] }).choices[0].message.content;
}

/** The deltas of the whole frames, joined. */
function textOf(received: string): string {
  const frames = received.split('\n\n').slice(0, -1);
  const chunks = frames.filter((frame) => frame.startsWith('data: {')).map((frame) => JSON.parse(frame.slice('data: '.length)));
  return chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
}
