import { type LeaseEnded, TurnError } from '@plugboard/kernel/contracts';
import { leaseLost } from '../../engine/turn/turn-lease.js';

/** Why a turn that no longer has its place in line must end. */
export function endedLease(ended: LeaseEnded): TurnError {
  switch (ended.why) {
    case 'cancelled':
      return new TurnError('turn_cancelled', 'Another request cancelled the turn.');
    case 'interrupted':
      return turnInterrupted();
    case 'deleted':
      return new TurnError('session_deleted', 'Another request deleted the session before the turn ended.');
    case 'expired':
      return leaseLost(ended);
  }
}

export function turnInterrupted(): TurnError {
  return new TurnError('turn_interrupted', 'The turn was interrupted by a newer request to its session.');
}
