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
  return contentType?.includes('amazon.eventstream') ? new OpenFrame() : openServerSentEvent();
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
class OpenFrame implements OpenEvent {
  isUsable = true;
  readonly #head: number[] = [];
  /** Bytes of the frame that are there, and that are missing. */
  #size = 0;
  #left = 0;

  take(chunk: Uint8Array): number {
    const largest = this.#size + chunk.length;
    this.isUsable = false;
    for (let position = 0; position < chunk.length; ) {
      let taken = 1;
      if (this.#left > 0) {
        taken = Math.min(this.#left, chunk.length - position);
        this.#left -= taken;
      } else if (this.#head.push(chunk[position] ?? 0) === HEAD) {
        this.#left = Math.max(0, Buffer.from(this.#head).readUInt32BE() - HEAD);
        this.#head.length = 0;
      }
      position += taken;
      this.#size += taken;
      if (this.#left > 0 || this.#head.length > 0) continue;
      this.#size = 0;
      this.isUsable = true;
    }
    return largest;
  }
}
