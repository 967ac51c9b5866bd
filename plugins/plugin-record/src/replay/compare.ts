import type { Attempt, EndLine, Recording } from '../format/recording.js';
import { endedFromOutside, isFinished } from './outside.js';
import { type TextOf, textsOf } from './same-text.js';
import { type Step, stepsOf } from './steps.js';

/** What can change in a turn. */
export const CHANGE_KINDS = ['prompt', 'tools', 'params', 'messages', 'model', 'calls', 'missing', 'answer', 'status'] as const;

export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** One difference between a recorded turn and its replay. */
export interface Change {
  readonly kind: ChangeKind;
  /** The number of the model call; 0 if the turn made none. */
  readonly step: number;
  /** As it was recorded: a value of JSON. */
  readonly before: unknown;
  readonly after: unknown;
}

/** A call without a recorded result. */
export interface MissingResult {
  readonly step: number;
  readonly call: unknown;
}

/** What a replay did. */
export interface Replay {
  readonly recording: Recording;
  readonly missing: readonly MissingResult[];
  /** Whether it ended at a model call without a recorded answer: how it would go on is unknown. */
  readonly isCutShort: boolean;
  /** Whether models went on where the recorded turn was ended: one more step is not a change. */
  readonly isOpenEnded: boolean;
  /** Attempts that only repeat what the recording left out. */
  isIgnored(attempt: Attempt): boolean;
}

/** What changed in a turn, by its steps. */
export function changesIn(recorded: Recording, replay: Replay): readonly Change[] {
  return new Comparison(recorded, replay).changes();
}

class Comparison {
  readonly #recorded: Recording;
  readonly #replay: Replay;
  readonly #textBefore: TextOf;
  readonly #textAfter: TextOf;
  readonly #changes: Change[] = [];
  /** The texts of the last difference of a kind: it is one change while it stays the same. */
  readonly #last = new Map<ChangeKind, string>();

  constructor(recorded: Recording, replay: Replay) {
    this.#recorded = recorded;
    this.#replay = replay;
    this.#textBefore = textsOf(recorded);
    this.#textAfter = textsOf(replay.recording);
  }

  changes(): readonly Change[] {
    const { missing, recording, isCutShort, isOpenEnded, isIgnored } = this.#replay;
    const before = stepsOf(this.#recorded);
    const after = stepsOf(recording, isIgnored);
    const both = Math.min(before.length, after.length);
    const isCut = endedFromOutside(this.#recorded);
    for (let index = 0; index < both; index++) {
      const [was, is] = [before[index] as Step, after[index] as Step];
      this.#settings(was, is);
      this.#differ('messages', was.step, ...differing(was.messages, is.messages, this.#textBefore, this.#textAfter));
      // A turn that was ended from outside may have been about to make its last calls.
      if (!isCut || index < before.length - 1) this.#differ('calls', was.step, was.calls, is.calls);
      this.#addMissing(missing, was.step);
    }
    if (!isCutShort && !isOpenEnded && before.length !== after.length) this.#otherSteps(before[both], after[both]);
    this.#addMissing(missing);
    if (!isCutShort) this.#end(recording.end, Math.max(0, ...after.map(({ step }) => step)));
    return this.#changes;
  }

  /** What stays the same from step to step, and is one change then. */
  #settings(was: Step, is: Step): void {
    this.#differOnce('prompt', was.step, was.prompt, is.prompt);
    const tools = differing(byName(was.tools), byName(is.tools), this.#textBefore, this.#textAfter);
    this.#differOnce('tools', was.step, ...tools);
    this.#differOnce('params', was.step, was.params, is.params);
    this.#differOnce('model', was.step, was.model, is.model);
  }

  /** One of the two turns made a model call more. What follows from it is not listed. */
  #otherSteps(was: Step | undefined, is: Step | undefined): void {
    const shown = (step: Step | undefined) => step && { ...step.model, calls: step.calls };
    this.#add('calls', was?.step ?? is?.step ?? 0, shown(was) ?? null, shown(is) ?? null);
  }

  #addMissing(missing: readonly MissingResult[], step?: number): void {
    const isListed = (one: MissingResult) => this.#changes.some(({ kind, after }) => kind === 'missing' && after === one.call);
    for (const one of missing) {
      if ((step === undefined || one.step === step) && !isListed(one)) this.#add('missing', one.step, null, one.call);
    }
  }

  #end(end: EndLine, step: number): void {
    const was = this.#recorded.end;
    // A replay that is ended does not name the limit, and has no text for it.
    const isCut = endedFromOutside(this.#recorded);
    const status = isCut ? (line: EndLine) => line.status : statusOf;
    if (!isCut && isFinished(was.status) && isFinished(end.status)) this.#differ('answer', step, was.answer, end.answer);
    this.#differ('status', step, status(was), status(end));
  }

  #differOnce(kind: ChangeKind, step: number, before: unknown, after: unknown): void {
    const texts = this.#textBefore(before) + this.#textAfter(after);
    if (this.#last.get(kind) !== texts) this.#differ(kind, step, before, after);
    this.#last.set(kind, texts);
  }

  #differ(kind: ChangeKind, step: number, before: unknown, after: unknown): void {
    if (this.#textBefore(before) !== this.#textAfter(after)) this.#add(kind, step, before, after);
  }

  #add(kind: ChangeKind, step: number, before: unknown, after: unknown): void {
    this.#changes.push({ kind, step, before, after });
  }
}

/** The parts of two lists that differ: without what they begin and end with in common. */
function differing<T>(
  before: readonly T[],
  after: readonly T[],
  textBefore: TextOf,
  textAfter: TextOf,
): [readonly T[], readonly T[]] {
  const was = before.map(textBefore);
  const is = after.map(textAfter);
  const shorter = Math.min(was.length, is.length);
  let start = 0;
  while (start < shorter && was[start] === is[start]) start++;
  let end = 0;
  while (end < shorter - start && was[was.length - 1 - end] === is[is.length - 1 - end]) end++;
  return [before.slice(start, before.length - end), after.slice(start, after.length - end)];
}

function byName<T extends { readonly name: string }>(tools: readonly T[]): readonly T[] {
  return tools.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function statusOf({ status, limit }: EndLine): string {
  return limit === undefined ? status : `${status} (${limit})`;
}
