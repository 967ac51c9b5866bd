import type { AgentEvent } from '@plugboard/kernel';
import { conversationId, type SessionId, type SharedStore, type Target } from '@plugboard/kernel/contracts';
import { endOf } from '../engine/log/batch.js';
import type { TurnTask } from '../engine/turn/turn-task.js';
import { type Ambient, SessionWatch } from './session-watch.js';
import { type RemoteBatch, type RemoteHead, RemoteTurn, topicOfSession } from './shared/remote-turn.js';
import { SessionLine } from './shared/session-line.js';
import type { SessionStorage } from './store/session-storage.js';

/** Bytes that the readers of a turn at other servers may be behind. Then they see it end. */
const MAX_BEHIND = 4 * 2 ** 20;

/** Events that come often, and change little of the record of a turn. */
const PIECES: ReadonlySet<AgentEvent['type']> = new Set(['text', 'reasoning', 'tool-call-delta', 'tool-progress', 'extra']);

/** Shows a turn to those who watch its session at other servers, until it has ended. */
export function showElsewhere(turn: TurnTask, conversation: string, shared: SharedStore, ambient: Ambient): void {
  turn.defer(shared.offer(topicOfSession(conversation), (signal) => textsOf(turn, watchOf(turn, signal, ambient))));
}

/** It begins at once, also if its first text is asked for when the turn has ended. */
function watchOf(turn: TurnTask, signal: AbortSignal, ambient: Ambient): SessionWatch {
  const watch = new SessionWatch([turn], MAX_BEHIND, ambient, () => {});
  signal.addEventListener('abort', () => void watch.return(), { once: true });
  return watch;
}

async function* textsOf(turn: TurnTask, watch: SessionWatch): AsyncGenerator<string> {
  for (const watched of watch.turns) {
    const { id, target, createdAt, messages, size, approvals, isWaiting, ahead } = watched;
    const seen = { id, createdAt, messages, size, approvals, isWaiting, ahead };
    yield JSON.stringify({ ...seen, agent: target.name, turnId: turn.turnId } satisfies RemoteHead);
  }
  for await (const { batch } of watch) {
    const record = batch.every(({ type }) => PIECES.has(type)) ? undefined : turn.record;
    yield JSON.stringify({ batch, record } satisfies RemoteBatch);
    if (endOf(batch)) return;
  }
}

interface Elsewhere {
  readonly storage: SessionStorage;
  readonly shared: SharedStore;
  /** The target with that name; undefined if this server has none. */
  targetOf(name: string): Target | undefined;
}

/** Adds the turns of other servers to a watch, until its signal aborts. Never rejects. */
export async function watchElsewhere(
  watch: SessionWatch,
  id: SessionId,
  signal: AbortSignal,
  elsewhere: Elsewhere,
): Promise<void> {
  const { storage, shared, targetOf } = elsewhere;
  const line = new SessionLine(id, storage, shared);
  const turns = new Map<string, RemoteTurn>();
  const begin = (offer: string, text: string) => {
    const head = JSON.parse(text) as RemoteHead;
    const target = targetOf(head.agent);
    if (!target) return;
    const { signal: never } = new AbortController();
    const turn = new RemoteTurn(head, target, () => line.endTurns('cancelled', never, head.turnId));
    turns.set(offer, turn);
    watch.addCursor(turn);
  };
  try {
    for await (const { offer, text } of shared.read(topicOfSession(conversationId(id)), signal)) {
      const turn = turns.get(offer);
      if (!turn) {
        if (text !== undefined) begin(offer, text);
        continue;
      }
      if (text !== undefined) turn.receive(text);
      else if (turns.delete(offer)) turn.close();
      watch.wake();
    }
  } catch {
    void watch.return(); // its watcher watches again
  }
}
