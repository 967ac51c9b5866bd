/** What a server reports of a running call. The unit is its choice. */
interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** The arguments of `ToolCall.progress`. The total and the message are optional. */
export function progressOf({ progress, total, message }: Progress): [message: string, fraction?: number] {
  const counted = total === undefined ? `${progress}` : `${progress} of ${total}`;
  if (total === undefined || !(total > 0)) return [message ?? counted];
  return [message ?? counted, Math.min(1, Math.max(0, progress / total))];
}
