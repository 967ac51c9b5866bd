import { parseDuration, parseSize } from '@plugboard/kernel';

/** The limits of an entry under `tools`. */
export interface ToolLimits {
  /** Time limit of one call and its interceptors, in milliseconds. */
  readonly timeout: number;
  /** Longest result for the model, in bytes. */
  readonly result: number;
}

/** @param shared the options of every entry under `tools`: `timeout` and `resultLimit`. */
export function toolLimits(shared: Readonly<Record<string, unknown>>): ToolLimits {
  return { timeout: parseDuration(String(shared.timeout ?? '60s')), result: parseSize(String(shared.resultLimit ?? '64kb')) };
}
