import type { Decision } from './approval.js';

const WHY: Readonly<Record<Exclude<Decision['by'], 'person'>, string>> = {
  expired: 'nobody approved it in time',
  overtaken: 'the conversation went on before anybody approved it',
  cancelled: 'the conversation was cancelled before anybody approved it',
  guessed: 'too many wrong codes were tried',
};

/** Why a call was denied; undefined if a person did it. */
export function reasonWithoutPerson({ by }: Decision): string | undefined {
  return by === 'person' ? undefined : WHY[by];
}

/** What the model is told of a call that was denied. */
export function denialOf({ by, reason }: Decision): string {
  if (by !== 'person') return `The call was denied and did not run: ${WHY[by]}.`;
  return reason === undefined
    ? 'A person denied the call. It did not run.'
    : `A person denied the call. It did not run. The reason: ${reason}`;
}
