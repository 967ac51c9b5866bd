import { AgentRuntimes } from '../../contracts/agent-runtime.js';
import type { AgentEvent } from '../../contracts/event.js';
import { OPEN } from '../../contracts/principal.js';
import { systemIds } from '../../host/base/ambient.js';
import { compose } from '../../host/compose.js';
import type { Server } from '../../host/server.js';
import { layout } from '../../layout.js';
import { ChatError, type Conversation, type Heard } from './conversation.js';

/**
 * An agent of a configuration file, run in this process: nothing listens, and the conversation is kept in memory.
 *
 * @param name the agent's name; where it is absent, the default agent, or the first one.
 * @throws ConfigError where the file cannot be run, ChatError where nobody of that name is in it.
 */
export async function talkInProcess(file: string, name: string | undefined): Promise<Conversation> {
  const server = await compose({
    file,
    layout,
    omit: ['transports', 'auth', 'log'],
    replace: { sessions: { use: 'memory' }, log: { level: 'error' } },
  });
  await server.start();
  try {
    return conversationWith(server, name);
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function conversationWith(server: Server, name: string | undefined): Conversation {
  const runtime = server.extensions(AgentRuntimes).one();
  const agents = runtime.list(OPEN).map((listing) => listing.name);
  const resolution = runtime.resolve(name ?? '', OPEN);
  const target = resolution.kind === 'target' ? resolution.target : undefined;
  const wanted = name === undefined ? (target?.name ?? agents[0]) : name;
  if (wanted === undefined || !agents.includes(wanted)) {
    throw new ChatError(
      agents.length === 0
        ? `there is nobody to talk to: nothing stands under agents or models in ${server.file}`
        : `there is no agent "${wanted}"; there are: ${agents.join(', ')}`,
    );
  }
  const session = `chat-${systemIds.base62(12)}`;

  return {
    agent: wanted,
    async *say(text, signal) {
      const found = runtime.resolve(wanted, OPEN);
      if (found.kind !== 'target') throw new ChatError(`there is no agent "${wanted}" any more`);
      const events = runtime.run({
        target: found.target,
        principal: OPEN,
        messages: [{ role: 'user', content: text }],
        session: { key: session },
        clientTools: [],
        params: {},
        incremental: true,
        requestId: `chat_${systemIds.hex(32)}`,
        metadata: {},
        signal,
      });
      let hasSpoken = false;
      for await (const batch of events) {
        for (const event of batch) {
          if (event.type === 'failed') throw new ChatError(event.failure.message);
          if (event.type === 'step' && hasSpoken) yield { kind: 'text', text: '\n\n' };
          if (event.type === 'step') hasSpoken = false;
          const heard = hear(event);
          if (heard) yield heard;
          hasSpoken ||= event.type === 'text';
        }
      }
    },
    close: () => server.stop().then(() => {}),
  };
}

function hear(event: AgentEvent): Heard | undefined {
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
