import type { LiveResponseBody } from './live-socket.js';
import type { Reply, TestServer } from './test-server.js';

/** `POST /v1/responses` to the assistant. */
export function respond(app: TestServer, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
  return app.request('POST', '/v1/responses', headers, { model: 'assistant', ...body });
}

/** The response in a reply. @throws Error if the reply is an error. */
export function responseIn({ status, body, text }: Reply): LiveResponseBody {
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return body as LiveResponseBody;
}

/** Creates a response. @throws Error if it is refused. */
export async function created(app: TestServer, body: object): Promise<LiveResponseBody> {
  return responseIn(await respond(app, body));
}

/** The keys of all sessions, sorted. */
export async function sessionKeys(app: TestServer): Promise<readonly string[]> {
  const { body } = await app.get('/v1/conversations?limit=100');
  return (body as { data: { key: string }[] }).data.map(({ key }) => key).toSorted();
}

/** The contents of the messages that the model was asked last, without the prompt. */
export function askedContents(app: TestServer): readonly unknown[] {
  return app.asked.messages.filter(({ role }) => role !== 'system').map(({ content }) => content);
}
