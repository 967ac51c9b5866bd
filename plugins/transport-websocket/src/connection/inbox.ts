import { Account } from '@plugboard/kernel/contracts';

/** Bytes before the payload of a ping or pong from a client: the head of the frame and its mask. */
const CONTROL_FRAME_HEAD = 6;

/** A message that has arrived. */
export interface Arrived {
  /** Its memory. */
  readonly account: Account;
  /** Leaves the account, which has other holders if a response comes of the message. */
  readonly leave: () => void;
  /** Whether there was memory for the whole message. */
  readonly fits: boolean;
}

/**
 * Reserves the memory of what a client sends: each message has an account from its first byte on.
 */
export class Inbox {
  readonly #open: () => Account;
  /** The account of the message that is arriving. */
  #arriving: Omit<Arrived, 'fits'> | undefined;

  /** @param open opens an account of the client. */
  constructor(open: () => Account) {
    this.#open = open;
  }

  /** Bytes have arrived. Returns the account without memory for them, if it has none. */
  arrived(bytes: number): Account | undefined {
    const { account } = this.#current();
    return account.reserve(Account.costOf(bytes)) ? undefined : account;
  }

  /** A ping or a pong has arrived, possibly within a message. */
  controlFrame(payload: Buffer): void {
    const arriving = this.#arriving;
    arriving?.account.release(Account.costOf(CONTROL_FRAME_HEAD + payload.length));
    if (arriving?.account.reserved === 0) this.close();
  }

  /** A message is complete. @param bytes of its text. */
  messageArrived(bytes: number): Arrived {
    const arrived = this.#current();
    this.#arriving = undefined;
    // Several messages may have arrived at once, in the account of the first.
    const missing = Account.costOf(bytes) - arrived.account.reserved;
    return { ...arrived, fits: missing <= 0 || arrived.account.reserve(missing) };
  }

  /** The connection has closed. */
  close(): void {
    this.#arriving?.leave();
    this.#arriving = undefined;
  }

  #current(): Omit<Arrived, 'fits'> {
    if (!this.#arriving) {
      const account = this.#open();
      this.#arriving = { account, leave: account.hold() };
    }
    return this.#arriving;
  }
}
