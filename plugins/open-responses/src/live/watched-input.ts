import { Account, type WatchedTurn } from '@plugboard/kernel/contracts';

interface SharedEvent {
  readonly event: string;
  users: number;
  readonly leaveAccount: () => void;
}

/** The events that are being sent, by their turns. */
const shared = new WeakMap<WatchedTurn, SharedEvent>();

/**
 * What was asked in a watched turn, as the event that its watchers are sent. It is the same for all
 * of them, and rendered once while any of them is being sent it: `releaseInput` must follow. The
 * account of the first one holds it (S-67).
 *
 * @param open opens an account of the watcher.
 * @throws TurnError `overloaded` if there is no memory for it.
 */
export function holdInput(turn: WatchedTurn, render: () => string, open: () => Account): string {
  const known = shared.get(turn) ?? rendered(turn, render, open());
  shared.set(turn, known);
  known.users++;
  return known.event;
}

/** The event has been sent to one of its watchers. */
export function releaseInput(turn: WatchedTurn): void {
  const known = shared.get(turn);
  if (!known || --known.users > 0) return;
  shared.delete(turn);
  known.leaveAccount();
}

function rendered({ size }: WatchedTurn, render: () => string, account: Account): SharedEvent {
  const leaveAccount = account.hold();
  try {
    account.require(Account.costOf(size));
    return { event: render(), users: 0, leaveAccount };
  } catch (error) {
    leaveAccount();
    throw error;
  }
}
