import { Account, type WatchedTurn } from '@plugboard/kernel/contracts';

/** The inputs that are being sent, by their turns. */
const inputs = new WeakMap<WatchedTurn, WatchedInput>();

/**
 * What was asked in a watched turn, as the event that its watchers are sent. It is the same for all
 * of them, and rendered once while any of them is being sent it. The account of the first one holds
 * it (S-67).
 */
export class WatchedInput {
  readonly #turn: WatchedTurn;
  #event: string | undefined;
  #users = 0;
  #leaveAccount: () => void = () => {};

  private constructor(turn: WatchedTurn) {
    this.#turn = turn;
  }

  static of(turn: WatchedTurn): WatchedInput {
    const known = inputs.get(turn);
    if (known) return known;
    const input = new WatchedInput(turn);
    inputs.set(turn, input);
    return input;
  }

  /**
   * The event, which is kept until `release` has been called as often.
   *
   * @param open opens an account of the watcher.
   * @throws TurnError `overloaded` if there is no memory for it.
   */
  hold(render: () => string, open: () => Account): string {
    if (this.#event === undefined) {
      const account = open();
      const leave = account.hold();
      try {
        account.require(Account.costOf(this.#turn.size));
        this.#event = render();
      } catch (error) {
        leave();
        throw error;
      }
      this.#leaveAccount = leave;
    }
    this.#users++;
    return this.#event;
  }

  release(): void {
    this.#users--;
    if (this.#users > 0) return;
    this.#event = undefined;
    this.#leaveAccount();
  }
}
