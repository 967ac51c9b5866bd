import type { AgentEvent } from '@plugboard/kernel';
import type { TurnRecord } from '@plugboard/kernel/contracts';
import { callFacts, nestedFacts, stepFacts, type TurnView, turnFacts } from './turn-facts.js';

/** Events that come often, and change at most the times of the last step. */
const PIECES: readonly AgentEvent['type'][] = ['text', 'reasoning', 'tool-call-delta', 'tool-progress', 'nested', 'extra'];

/** Says what has changed in the record of a turn that runs, for `svc:turn.progress`. */
export class TurnProgress {
  #head = '';
  #lastStep = '';
  /** What was sent of each step or call; null once that cannot change any more. */
  readonly #steps: (string | null)[] = [];
  readonly #calls: (string | null)[] = [];

  /**
   * The fields of the next event; undefined if nothing has changed.
   * @param batch the events that were just written
   */
  next(batch: readonly AgentEvent[], turn: number | undefined, record: TurnRecord, view: TurnView): string | undefined {
    const last = record.steps.at(-1);
    const lastStep = `${last?.firstToken} ${last?.reasoned}`;
    if (lastStep === this.#lastStep && batch.every(({ type }) => PIECES.includes(type))) return undefined;
    this.#lastStep = lastStep;
    const head = this.#headOf(turn, record, view);
    const steps = view.visibility === 'none' ? [] : this.#changedSteps(record, view);
    const calls = view.visibility === 'none' ? [] : this.#changedCalls(record, view);
    if (head === '' && steps.length === 0 && calls.length === 0) return undefined;
    return `"at_ms":${record.duration}${head},"steps":[${steps.join()}],"calls":[${calls.join()}]`;
  }

  #headOf(turn: number | undefined, record: TurnRecord, view: TurnView): string {
    const { steps, calls, ...rest } = turnFacts({ ...record, steps: [], calls: [] }, view);
    const head = `,${JSON.stringify({ turn: turn ?? null, ...rest }).slice(1, -1)}`;
    if (head === this.#head) return '';
    this.#head = head;
    return head;
  }

  /** Without the reasoning, which its items have. */
  #changedSteps({ steps }: TurnRecord, view: TurnView): string[] {
    return changed(steps, this.#steps, (step) => {
      const { reasoning, ...facts } = stepFacts(step, view);
      return { facts, isOver: step.duration !== undefined };
    });
  }

  /** Without the errors, which the items have. */
  #changedCalls(record: TurnRecord, view: TurnView): string[] {
    return changed(record.calls, this.#calls, (call) => {
      const isTurnOver = record.reason !== undefined;
      const { error, ...facts } = callFacts(call, isTurnOver, view);
      const isOver = facts.status !== 'in_progress';
      return { facts, isOver, more: () => ({ nested: nestedFacts(call, isTurnOver, view) }) };
    });
  }
}

interface Described {
  readonly facts: object;
  readonly isOver: boolean;
  /** What may be long: it is sent with the first facts and the last ones only. */
  more?(): object;
}

function changed<T>(entries: readonly T[], sent: (string | null)[], describe: (entry: T) => Described): string[] {
  return entries.flatMap((entry, index) => {
    const before = sent[index];
    if (before === null) return [];
    const { facts, isOver, more } = describe(entry);
    const json = JSON.stringify(facts);
    sent[index] = isOver ? null : json;
    if (json === before) return [];
    return [JSON.stringify({ index, ...facts, ...((isOver || before === undefined) && more?.()) })];
  });
}
