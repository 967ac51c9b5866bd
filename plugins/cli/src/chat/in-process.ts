import { type AgentEvent, AgentRuntimes } from '@plugboard/kernel';
import { Account, conversationId, OPEN, TurnError, textOf } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import { standardError, systemIds } from '@plugboard/kernel/internal';
import { composeServer } from '../server/compose.js';
import { removeSecrets } from '../server/private-environment.js';
import { runningConfigs } from '../server/running-config.js';
import { serverInfo } from '../server/server-info.js';
import {
  type ChatAgents,
  ChatError,
  type ChatEvent,
  type ChatMessage,
  type ChatTarget,
  type ChatTurn,
  MAX_LAST_MESSAGES,
  toolName,
} from './conversation.js';

const MAX_LISTED = 20;

/**
 * Opens the agents of a configuration file, in this process: nothing listens.
 *
 * @param keepsSessions whether conversations are in the session store of the file. By default they
 * are kept in memory, so that a server can use the store at the same time.
 * @throws ConfigError if the file has mistakes, ChatError if the server does not start.
 */
export async function openInProcess(file: string, keepsSessions: boolean): Promise<ChatAgents> {
  const server = await composeServer({
    file,
    env: { ...process.env },
    omit: ['transports', 'auth', 'log'],
    logTo: { write: (line) => void (isAudit(line) || standardError().write(line)) },
    replace: { ...(!keepsSessions && { sessions: { use: 'memory' } }), log: { level: 'error' } },
  });
  removeSecrets(server);
  try {
    await server.start();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ChatError(keepsSessions ? message + talkToServer(file) : message);
  }
  return new InProcess(server, keepsSessions && serverInfo(server).sessions !== 'memory');
}

/** How to use the sessions of a server that has them open. */
function talkToServer(file: string): string {
  const [running] = runningConfigs(file);
  if (running === undefined) return '';
  const [address = 'ADDRESS'] = running.addresses;
  return `\nserver ${running.pid} runs with this file: add --url ${address} to continue its sessions`;
}

/** Audit lines are about callers, and are written at any level: here the user is the caller. */
function isAudit(line: string): boolean {
  return line.includes('"log":"audit"');
}

class InProcess implements ChatAgents {
  readonly #server: HostServer;

  constructor(
    server: HostServer,
    readonly keepsSessions: boolean,
  ) {
    this.#server = server;
  }

  get #runtime() {
    return this.#server.extensions(AgentRuntimes).one();
  }

  async targets(): Promise<readonly ChatTarget[]> {
    const targets = this.#runtime.list(OPEN);
    if (targets.length === 0) {
      throw new ChatError(`${this.#server.inspection.file} has no agents and no models; add one under \`agents\` or \`models\``);
    }
    const fallback = this.#runtime.resolve('', OPEN);
    const first = fallback.kind === 'target' ? fallback.target.name : undefined;
    return targets.toSorted((a, b) => Number(b.name === first) - Number(a.name === first));
  }

  async sessions(agent: string) {
    const page = { agent, limit: MAX_LISTED, order: 'desc' } as const;
    const listed = await this.#reading((account) => this.#runtime.conversations.list(page, OPEN, account));
    return listed.map(({ id, title, updatedAt }) => ({ key: id.key, title: title ?? '', updatedAt: new Date(updatedAt) }));
  }

  async lastMessages(agent: string, key: string): Promise<readonly ChatMessage[]> {
    const id = conversationId({ project: OPEN.project, agent, key });
    try {
      const page = { limit: MAX_LAST_MESSAGES, order: 'desc' } as const;
      const { turns } = await this.#reading((account) => this.#runtime.conversations.turns(id, page, OPEN, account));
      const messages = turns.toReversed().flatMap((turn) => turn.messages);
      return messages
        .flatMap(({ role, content }) => (role === 'user' || role === 'assistant' ? [{ role, text: textOf(content) }] : []))
        .filter(({ text }) => text !== '')
        .slice(-MAX_LAST_MESSAGES);
    } catch (error) {
      if (!(error instanceof TurnError)) throw error;
      if (error.code === 'conversation_not_found') return [];
      throw new ChatError(error.message);
    }
  }

  /** @param read is given the memory for what it reads. */
  async #reading<T>(read: (account: Account) => Promise<T>): Promise<T> {
    const account = new Account(this.#server.budgets.memory, OPEN);
    const leave = account.hold();
    return read(account).finally(leave);
  }

  async *run({ agent, session, input, signal }: ChatTurn): AsyncGenerator<ChatEvent> {
    const found = this.#runtime.resolve(agent, OPEN);
    if (found.kind !== 'target') throw new ChatError(`the agent "${agent}" no longer exists`);
    const isMessage = typeof input === 'string';
    try {
      const events = this.#runtime.run({
        target: found.target,
        principal: OPEN,
        messages: isMessage ? [{ role: 'user', content: input }] : [],
        session: { key: session.key },
        approvals: isMessage ? undefined : input,
        clientTools: [],
        params: {},
        incremental: true,
        requestId: `chat_${systemIds.hex(32)}`,
        transport: 'chat',
        metadata: {},
        signal,
      });
      const reader = new EventReader();
      for await (const batch of events) for (const event of batch) yield* reader.read(event);
    } catch (error) {
      throw error instanceof TurnError ? new ChatError(error.message) : error;
    }
  }

  async close(): Promise<void> {
    await this.#server.stop();
  }
}

/** Translates the events of one turn to those of the chat. */
class EventReader {
  /** The names of tools, by the ids of their calls. */
  readonly #names = new Map<string, string>();
  #hasText = false;
  #asks = false;

  *read(event: AgentEvent): Generator<ChatEvent> {
    switch (event.type) {
      case 'step':
        if (this.#hasText) yield { kind: 'text', text: '\n\n' };
        this.#hasText = false;
        break;
      case 'text':
        if (event.isNotice && this.#asks) break; // the request for approval has an event of its own
        this.#hasText = true;
        yield { kind: 'text', text: event.text };
        break;
      case 'tool-call': {
        const name = event.tool ? toolName(event.tool.entry, event.tool.name) : event.name;
        this.#names.set(event.id, name);
        yield { kind: 'call', name, input: event.arguments };
        break;
      }
      case 'tool-result': {
        const { id, content, isError } = event;
        yield { kind: 'result', name: this.#names.get(id) ?? '', content, isError };
        break;
      }
      case 'approval': {
        this.#asks = true;
        const { id, call } = event;
        const name = call.tool ? toolName(call.tool.entry, call.tool.name) : call.name;
        yield { kind: 'approval', id, name, input: call.arguments };
        break;
      }
      case 'finished':
        if (event.reason !== 'stop') yield { kind: 'cut', reason: event.limit ?? event.reason };
        yield { kind: 'usage', input: event.usage.promptTokens, output: event.usage.completionTokens };
        break;
      case 'failed':
        throw new ChatError(event.failure.message);
    }
  }
}
