import type { TurnLine } from './recording.js';

/** `<time>-<turnId>.jsonl`: sorted by name, the oldest comes first. */
const FILE_NAME = /^\d{8}T\d{9}Z-[\w-]{1,80}\.jsonl$/;

/** The name of a recording: `20261128T034700123Z-turn_….jsonl`, in UTC. */
export function fileNameOf({ at, id }: Pick<TurnLine, 'at' | 'id'>): string {
  return `${new Date(at).toISOString().replace(/[-:.]/g, '')}-${id.replace(/[^\w-]/g, '_').slice(0, 80)}.jsonl`;
}

/** Other files of the folder are left alone. */
export function isRecordingName(name: string): boolean {
  return FILE_NAME.test(name);
}
