const BLANK_LINES = ['\n\n', '\n\r\n', '\r\r'];

/** Follows where the events of a body end. */
export interface OpenEvent {
  /** Returns the bytes of the largest event that its reader has to hold with this chunk. */
  take(chunk: Uint8Array): number;
  /**
   * Whether the reader can go on with the last chunk. If not, it would copy what it holds of the
   * event for each chunk of it: the chunks wait for the end of the event.
   */
  readonly isUsable: boolean;
}

/** Chooses by the content type. */
export function openEventOf(contentType: string | null): OpenEvent {
  return contentType?.includes('amazon.eventstream') ? openFrame() : openServerSentEvent();
}

/** Server-sent events: a blank line ends one. */
function openServerSentEvent(): OpenEvent {
  let size = 0;
  const take = (chunk: Uint8Array) => {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const largest = size + bytes.length;
    const end = Math.max(...BLANK_LINES.map((line) => bytes.lastIndexOf(line)));
    size = end < 0 ? largest : bytes.length - end;
    return largest;
  };
  return { take, isUsable: true };
}

/** Bytes of the length that a frame begins with. */
const HEAD = 4;

/** The frames of Amazon Bedrock: each begins with its length. */
function openFrame(): OpenEvent {
  const head: number[] = [];
  /** Bytes of the frame that are there, and that are missing. */
  let size = 0;
  let left = 0;
  let isUsable = true;
  return {
    take(chunk) {
      const largest = size + chunk.length;
      isUsable = false;
      for (let position = 0; position < chunk.length; ) {
        let taken = 1;
        if (left > 0) {
          taken = Math.min(left, chunk.length - position);
          left -= taken;
        } else if (head.push(chunk[position] ?? 0) === HEAD) {
          left = Math.max(0, Buffer.from(head).readUInt32BE() - HEAD);
          head.length = 0;
        }
        position += taken;
        size += taken;
        if (left > 0 || head.length > 0) continue;
        size = 0;
        isUsable = true;
      }
      return largest;
    },
    get isUsable() {
      return isUsable;
    },
  };
}
