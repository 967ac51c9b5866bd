import { NO_USAGE, type TurnRecord, type Usage } from '@plugboard/kernel/contracts';

/** The record of a turn whose process died: only that is known, and which of its calls are kept. */
export function interruptedRecord(kept: readonly Pick<TurnRecord['calls'][number], 'id' | 'name' | 'tool'>[] = []): string {
  const calls = kept.map((call) => ({ ...call, step: 1, start: 0, state: 'cut' }) as const);
  const record: TurnRecord = { queued: 0, duration: 0, reason: 'interrupted', steps: [], calls };
  return JSON.stringify(record);
}

/** Reads a record. Undefined if it is not one: another program has changed it. */
export function parseRecord(text: string | undefined): TurnRecord | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const isRecord = typeof value === 'object' && value !== null && 'steps' in value && 'calls' in value;
    return isRecord && Array.isArray(value.steps) && Array.isArray(value.calls) ? complete(value as TurnRecord) : undefined;
  } catch {
    return undefined;
  }
}

/** Older records have no counts that were added later: these are 0. */
function complete(record: TurnRecord): TurnRecord {
  const counted = <T extends { readonly usage?: Usage | undefined }>(of: T): T =>
    of?.usage ? { ...of, usage: { ...NO_USAGE, ...of.usage } } : of;
  return { ...counted(record), steps: record.steps.map(counted) };
}
