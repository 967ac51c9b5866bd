import type { Extensions, Principal } from '@plugboard/kernel';
import { type AgentRuntime, DEFAULT_PROJECT, type Target } from '@plugboard/kernel/contracts';
import type { StoredMessage } from '../state/records.js';

/** The agents of a channel, and how they see its senders. */
export class ChannelAgents {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #entry: string;
  readonly #platform: string;
  readonly #options: { readonly agent: string; readonly agents?: readonly string[] | undefined };

  constructor(
    runtimes: Extensions<AgentRuntime>,
    options: { readonly agent: string; readonly agents?: readonly string[] | undefined },
    names: { readonly entry: string; readonly platform: string },
  ) {
    this.#runtimes = runtimes;
    this.#options = options;
    this.#entry = names.entry;
    this.#platform = names.platform;
  }

  get runtime(): AgentRuntime {
    return this.#runtimes.one();
  }

  /** The agent of a chat: the one that was chosen, as long as there is one of that name. */
  chosen(name: string | undefined): string {
    return name !== undefined && this.find(name) ? name : this.#options.agent;
  }

  /** The agents that `/agent` offers: those of the option, else all of the project. */
  names(): readonly string[] {
    const { agent, agents } = this.#options;
    if (agents) return [...new Set([agent, ...agents])];
    const all = this.runtime.list(ANY).filter(({ kind }) => kind === 'agent');
    return all.map(({ name }) => name).filter((name) => this.find(name));
  }

  /** Returns an agent that this channel may use, or undefined. */
  find(name: string): Target | undefined {
    const { agent, agents } = this.#options;
    if (agents && name !== agent && !agents.includes(name)) return undefined;
    const target = this.#resolve(name);
    return target && target.project === this.#project ? target : undefined;
  }

  /**
   * The sender, as tools see it (CH-3). Its limits, and the calls that wait for its approval, are
   * its own.
   */
  principal({ chat, thread, sender }: Pick<StoredMessage, 'chat' | 'thread' | 'sender'>): Principal {
    const { id, name } = sender;
    return {
      project: this.#project,
      token: this.#entry,
      tokenId: `${this.#entry}:${id}`,
      scopes: ['chat'],
      subject: id,
      claims: {
        platform: this.#platform,
        chat,
        ...(thread !== undefined && { thread }),
        ...(name !== undefined && { name }),
      },
    };
  }

  /** The project of the configured agent. */
  get #project(): string {
    return this.#resolve(this.#options.agent)?.project ?? DEFAULT_PROJECT;
  }

  /** A name that nothing has resolves to the default agent. */
  #resolve(name: string): Target | undefined {
    const resolved = this.runtime.resolve(name, ANY);
    return resolved.kind === 'target' && resolved.target.name === name ? resolved.target : undefined;
  }
}

/** Who reaches the agents of all projects. */
const ANY: Principal = { project: DEFAULT_PROJECT, scopes: ['chat'] };
