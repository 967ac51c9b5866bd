import type { Principal } from '@plugboard/kernel';
import type { AgentRuntime, SessionId, SharedStore } from '@plugboard/kernel/contracts';
import { turnIdOf } from '../engine/turn/turn-task.js';
import { SessionLine } from './shared/session-line.js';
import type { SessionStorage } from './store/session-storage.js';

/** Turns at other servers that share the store. */
export class OtherServers implements NonNullable<AgentRuntime['otherServers']> {
  readonly #storage: SessionStorage;
  readonly #shared: SharedStore;

  constructor(storage: SessionStorage, shared: SharedStore) {
    this.#storage = storage;
    this.#shared = shared;
  }

  async find(id: string, { project, agents }: Principal): Promise<SessionId | undefined> {
    const found = await this.#storage.call(() => this.#shared.findTurn(project, turnIdOf(id)), 'findTurn');
    return found && (agents?.includes(found.agent) ?? true) ? found : undefined;
  }

  async cancel(id: string, principal: Principal): Promise<boolean> {
    const session = await this.find(id, principal);
    if (!session) return false;
    const { signal } = new AbortController(); // a caller that has left does not stop it
    await new SessionLine(session, this.#storage, this.#shared).endTurns('cancelled', signal, turnIdOf(id));
    return true;
  }

  offer(topic: string, open: (signal: AbortSignal) => AsyncIterable<string>): () => void {
    return this.#shared.offer(topic, open);
  }

  read(topic: string, signal: AbortSignal): ReturnType<SharedStore['read']> {
    return this.#shared.read(topic, signal);
  }
}
