/** A part of an answer, or the whole, exceeds its limit. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';

  /** @param part for example `an event`, or in the plural where its items are counted. */
  constructor(
    readonly part: string,
    readonly limit: number,
    readonly unit: 'bytes' | 'items' = 'bytes',
  ) {
    super(`${part} of more than ${limit} ${unit}`);
  }
}
