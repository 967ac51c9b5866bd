import fc from 'fast-check';
import { SURFACES, type Surface } from './turn.js';
import { ENDS, type End, ROUNDS, type Round } from './words.js';

/** A request for an answer. */
export interface CreateMove {
  readonly move: 'create';
  readonly surface: Surface;
  readonly stored: boolean;
  /** `resent`: the input repeats a conversation, as that of clients does that store nothing. */
  readonly continues: 'nothing' | 'response' | 'resent' | 'session';
  readonly which: number;
  readonly rounds: readonly Round[];
  readonly end: End;
  /** Whether open calls get their results; else the user says something instead. */
  readonly answers: boolean;
  readonly instructs: boolean;
  readonly lane: '' | 'b';
  readonly busy: 'enqueue' | 'reject' | 'interrupt';
}

/** How often each of the other moves comes up, against 24 of creating. */
const WEIGHTS = {
  /** An answer that waits goes on. */
  release: 4,
  cancel: 2,
  delete: 2,
  /** An answer goes on, and is cancelled or deleted at about the same time. */
  race: 2,
  get: 2,
  resume: 3,
  /** A client disconnects. */
  leave: 2,
  reload: 1,
  stop: 1,
  kill: 1,
} as const;

/** Something else, with numbers that say of which response and how. */
export interface OtherMove {
  readonly move: keyof typeof WEIGHTS;
  readonly which: number;
  readonly how: number;
}

export type Move = CreateMove | OtherMove;

/** Mostly the newest. */
const which = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(99) });

const create: fc.Arbitrary<CreateMove> = fc.record({
  move: fc.constant('create' as const),
  surface: fc.constantFrom(...SURFACES),
  stored: fc.oneof({ weight: 2, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  continues: fc.constantFrom('nothing', 'response', 'response', 'resent', 'session', 'session'),
  which,
  rounds: fc.array(fc.constantFrom(...ROUNDS), { maxLength: 2 }),
  end: fc.constantFrom(...ENDS, 'answers' as const, 'waits' as const),
  answers: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  instructs: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  lane: fc.constantFrom('', 'b'),
  busy: fc.constantFrom('enqueue', 'enqueue', 'reject', 'interrupt'),
});

const other = (Object.entries(WEIGHTS) as [OtherMove['move'], number][]).map(([move, weight]) => ({
  weight,
  arbitrary: fc.record({ move: fc.constant(move), which, how: fc.nat(99) }),
}));

/** A program: what clients and operators do, one after the other. */
export const program: fc.Arbitrary<readonly Move[]> = fc.array(fc.oneof({ weight: 24, arbitrary: create }, ...other), {
  minLength: 1,
  maxLength: 24,
  size: 'max',
});
