import { createHash } from 'node:crypto';
import type { Address } from './address.js';

/** An answer that is shown as a draft now. */
export interface RunningDraft {
  /** `GrowingAnswer.id`. */
  readonly id: string;
  readonly chat: string;
  readonly to: Address;
}

/** The drafts of the answers that run, by the number that Telegram knows them by. */
export class RunningDrafts {
  readonly #drafts = new Map<string, RunningDraft>();

  /** @returns the number of the draft: the same for the same answer, also after a crash. */
  begin(draft: RunningDraft): number {
    const number = createHash('sha256').update(draft.id).digest().readUInt32BE() % 0x7fff_ffff || 1;
    this.#drafts.set(keyOf(draft.to.chat, number), draft);
    return number;
  }

  end({ to }: RunningDraft, number: number): void {
    this.#drafts.delete(keyOf(to.chat, number));
  }

  find(chat: number, number: number): RunningDraft | undefined {
    return this.#drafts.get(keyOf(chat, number));
  }
}

function keyOf(chat: number, number: number): string {
  return `${chat}/${number}`;
}
