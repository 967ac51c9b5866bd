import { invalidValue, singleValue, wrongValue } from '@plugboard/openai-protocol';
import { dayOf, isDay, monthOf } from '../ledger/periods.js';

/** What rows of a report are added up by. */
export const USAGE_KEYS = ['day', 'project', 'token', 'agent', 'model'] as const;
export type UsageKey = (typeof USAGE_KEYS)[number];

/** Days are in UTC, and both included. */
export interface UsageQuery {
  readonly from: string;
  readonly to: string;
  readonly by: readonly UsageKey[];
}

/** @param now milliseconds since 1970. @throws ProtocolError 400 with the `param` that is wrong. */
export function usageQueryOf(query: URLSearchParams, now: number): UsageQuery {
  const to = dayAt(query, 'to') ?? monthOf(dayOf(now)).last;
  const from = dayAt(query, 'from') ?? monthOf(to).first;
  if (from > to) throw invalidValue('from', `it is after the last day, ${to}`);
  return { from, to, by: keysOf(singleValue(query, 'by') ?? 'agent,model') };
}

function dayAt(query: URLSearchParams, param: string): string | undefined {
  const text = singleValue(query, param);
  if (text !== undefined && !isDay(text)) throw invalidValue(param, 'expected a day such as 2026-11-30');
  return text;
}

function keysOf(text: string): readonly UsageKey[] {
  const keys = text.split(',').map((word) => {
    const key = USAGE_KEYS.find((known) => known === word);
    if (key === undefined) throw wrongValue('by', word, USAGE_KEYS);
    return key;
  });
  if (new Set(keys).size < keys.length) throw invalidValue('by', 'it names a key more than once');
  return keys;
}
