import * as openai7 from 'openai';
import * as openai6 from 'openai-6';
import t from 'tap';
import { CONVERSATION_TRANSPORTS, type ConversationBody, startWithConversations } from '../support/conversations.js';

const libraries = { 'openai 7': openai7, 'openai 6': openai6 as unknown as typeof openai7 };

const { server } = await startWithConversations(
  t,
  `${CONVERSATION_TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock] }
defaultAgent: assistant
`,
);

const ask = (content: string) => ({ model: 'assistant', messages: [{ role: 'user' as const, content }] });
const seed = [
  { type: 'message' as const, role: 'user' as const, content: 'I am Ann.' },
  { type: 'message' as const, role: 'assistant' as const, content: 'Hello, Ann.' },
];

for (const [library, { OpenAI, ...sdk }] of Object.entries(libraries)) {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });

  t.test(`${library}: a conversation is created, continued and deleted`, async (t) => {
    const made = await client.conversations.create();
    t.match(made, { id: /^conv_[0-9a-f]{40}$/, object: 'conversation', created_at: Number, metadata: {} });
    t.strictSame(await client.conversations.retrieve(made.id), made);
    const changed = await client.conversations.update(made.id, { metadata: { topic: 'travel' } });
    t.strictSame(changed.metadata, { topic: 'travel' });
    t.strictSame(await client.conversations.delete(made.id), { id: made.id, object: 'conversation.deleted', deleted: true });
    const gone = await client.conversations.retrieve(made.id).catch((error) => error);
    t.type(gone, sdk.NotFoundError);
    t.match(gone, { status: 404, code: 'conversation_not_found', type: 'invalid_request_error', requestID: /^req_/ });
  });

  t.test(`${library}: a conversation starts with items, continues with turns and is read page by page`, async (t) => {
    const { id, ...made } = await client.conversations.create({ items: seed, metadata: { by: library } });
    t.match(made, { turns: 1, metadata: { by: library } });
    server.models.enqueue(
      { toolCalls: [{ id: 'call_1', name: 'clock', arguments: { timeZone: 'UTC' } }] },
      { text: 'It is late, Ann.' },
    );
    const completion = await client.chat.completions.create({ ...ask('What time is it?'), session_id: id } as ReturnType<
      typeof ask
    >);
    t.equal(completion.choices[0]?.message.content, 'It is late, Ann.');
    t.equal(server.asked.messages[0]?.content, 'I am Ann.');

    const items: openai7.OpenAI.Conversations.ConversationItem[] = [];
    for await (const item of client.conversations.items.list(id, { limit: 2, order: 'asc' })) items.push(item);
    t.strictSame(
      items.map((item) => (item.type === 'message' ? `${item.role}: ${shown(item)}` : item.type)),
      ['user: I am Ann.', 'assistant: Hello, Ann.', 'user: What time is it?', 'mcp_call', 'assistant: It is late, Ann.'],
    );
    t.match(items[3], { type: 'mcp_call', server_label: 'clock', name: 'clock', error: null, output: /UTC/ });
    const newest = await client.conversations.items.list(id, { limit: 1 });
    t.strictSame(newest.data, [items[4]]);
    t.ok(newest.has_more);
    for (const item of items) {
      t.strictSame(await client.conversations.items.retrieve(item.id ?? '', { conversation_id: id }), item);
    }
  });

  t.test(`${library}: items can be added but not deleted`, async (t) => {
    const { id } = await client.conversations.create();
    const added = await client.conversations.items.create(id, { items: seed, include: ['message.output_text.logprobs'] });
    t.match(added, { object: 'list', has_more: false });
    t.equal(added.data.length, 2);
    const refused = await client.conversations.items.delete(added.first_id, { conversation_id: id }).catch((error) => error);
    t.match(refused, { status: 405, code: 'method_not_supported' });
    const prompt = client.conversations.items.create(id, { items: [{ role: 'system', content: 'Be brief.' }] });
    const error = await prompt.catch((error) => error);
    t.type(error, sdk.BadRequestError);
    t.match(error, { param: 'items[0].role' });
  });

  t.test(`${library}: routes beyond the protocol are called by path`, async (t) => {
    const { id } = await client.conversations.create({ items: seed });
    const fork = await client.post<ConversationBody>(`/conversations/${id}/fork`, { body: { id: `fork by ${library}` } });
    t.match(fork, { key: `fork by ${library}`, turns: 1 });
    t.match(await client.post(`/conversations/${id}/cancel`), { id, status: 'idle' });
    const page = await client.get<{ data: ConversationBody[] }>('/conversations', { query: { limit: 1 } });
    t.equal(page.data[0]?.id, fork.id);
  });
}

/** The text of a message. */
function shown({ content }: openai7.OpenAI.Conversations.Message): string {
  return content.map((part) => ('text' in part ? part.text : '')).join('');
}
