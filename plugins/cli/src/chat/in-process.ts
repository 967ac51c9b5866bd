import { type AgentEvent, AgentRuntimes } from '@plugboard/kernel';
import { OPEN } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import { systemIds } from '@plugboard/kernel/internal';
import { composeServer } from '../server/compose.js';
import { PrivateEnvironment } from '../server/private-environment.js';
import { ChatError, type ChatEvent, type Conversation } from './conversation.js';

/**
 * Opens a conversation with an agent of a configuration file, in this process: nothing listens, and
 * the conversation is kept in memory.
 *
 * @param name the agent's name; by default the default agent, or the first one.
 * @throws ConfigError if the file has mistakes, ChatError if there is no such agent.
 */
export async function openInProcess(file: string, name: string | undefined): Promise<Conversation> {
  const environment = new PrivateEnvironment();
  const server = await composeServer({
    file,
    env: environment.variables,
    omit: ['transports', 'auth', 'log'],
    replace: { sessions: { use: 'memory' }, log: { level: 'error' } },
  });
  environment.removeSecrets(server);
  await server.start();
  try {
    return conversationWith(server, name);
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function conversationWith(server: HostServer, name: string | undefined): Conversation {
  const runtime = server.extensions(AgentRuntimes).one();
  const agents = runtime.list(OPEN).map((listing) => listing.name);
  const resolution = runtime.resolve(name ?? '', OPEN);
  const target = resolution.kind === 'target' ? resolution.target : undefined;
  const wanted = name === undefined ? (target?.name ?? agents[0]) : name;
  if (wanted === undefined || !agents.includes(wanted)) {
    throw new ChatError(
      agents.length === 0
        ? `${server.inspection.file} has no agents and no models; add one under \`agents\` or \`models\``
        : `unknown agent "${wanted}"; known: ${agents.join(', ')}`,
    );
  }
  const session = `chat-${systemIds.base62(12)}`;

  return {
    agent: wanted,
    async *send(text, signal) {
      const found = runtime.resolve(wanted, OPEN);
      if (found.kind !== 'target') throw new ChatError(`the agent "${wanted}" no longer exists`);
      const events = runtime.run({
        target: found.target,
        principal: OPEN,
        messages: [{ role: 'user', content: text }],
        session: { key: session },
        clientTools: [],
        params: {},
        incremental: true,
        requestId: `chat_${systemIds.hex(32)}`,
        transport: 'chat',
        metadata: {},
        signal,
      });
      let hasText = false;
      for await (const batch of events) {
        for (const event of batch) {
          if (event.type === 'failed') throw new ChatError(event.failure.message);
          if (event.type === 'step' && hasText) yield { kind: 'text', text: '\n\n' };
          if (event.type === 'step') hasText = false;
          const shown = chatEventOf(event);
          if (shown) yield shown;
          hasText ||= event.type === 'text';
        }
      }
    },
    close: () => server.stop().then(() => {}),
  };
}

function chatEventOf(event: AgentEvent): ChatEvent | undefined {
  switch (event.type) {
    case 'text':
      return { kind: 'text', text: event.text };
    case 'tool-call':
      return { kind: 'call', name: event.name, input: event.arguments };
    case 'tool-result':
      return { kind: 'result', content: event.content, isError: event.isError };
    case 'finished':
      return event.reason === 'stop' ? undefined : { kind: 'cut', reason: event.limit ?? event.reason };
    default:
      return undefined;
  }
}
