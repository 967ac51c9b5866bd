import type { Principal } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';

const UNLIMITED = () => {};

/** Limits concurrent turns per credential, for those that have a limit of their own. */
export class CredentialTurnLimiter {
  readonly #running = new Map<string, number>();

  /** @returns a function to call when the turn has ended. @throws TurnError `rate_limited` */
  acquire({ tokenId, limits }: Principal): () => void {
    const most = limits?.runningTurns;
    if (most === undefined || tokenId === undefined) return UNLIMITED;
    const running = this.#running.get(tokenId) ?? 0;
    if (running >= most) {
      const turns = most === 1 ? '1 turn' : `${most} turns`;
      throw new TurnError('rate_limited', `This credential may run ${turns} at once; try again when one has ended.`, {
        retryAfter: 1,
      });
    }
    this.#running.set(tokenId, running + 1);
    return () => this.#release(tokenId);
  }

  #release(tokenId: string): void {
    const running = this.#running.get(tokenId) ?? 0;
    if (running > 1) this.#running.set(tokenId, running - 1);
    else this.#running.delete(tokenId);
  }
}
