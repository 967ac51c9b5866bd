import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';

/** The body of a response, as far as it was read. */
export interface ReadBody {
  readonly bytes: Buffer;
  /** Whether there is more. */
  readonly isCut: boolean;
}

const DECOMPRESSORS = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
} as const;

/**
 * Reads at most `limit` bytes of a body, counted after decompression, and closes the response
 * (OAS-10). What a small body decompresses to is never held as a whole.
 *
 * @throws the error of the connection or of the decompression.
 */
export async function readBody(response: IncomingMessage, limit: number): Promise<ReadBody> {
  const pieces: Buffer[] = [];
  let size = 0;
  let body: Readable = response;
  try {
    body = decompressed(response);
    for await (const piece of body as AsyncIterable<Buffer>) {
      pieces.push(piece.subarray(0, limit - size));
      size += piece.length;
      if (size > limit) return { bytes: Buffer.concat(pieces), isCut: true };
    }
    return { bytes: Buffer.concat(pieces), isCut: false };
  } catch (error) {
    // The answer to a HEAD names an encoding, and has no body.
    const isAtEnd = response.complete && (error as NodeJS.ErrnoException).code === 'Z_BUF_ERROR';
    if (isAtEnd && 'bytesWritten' in body && body.bytesWritten === 0) return { bytes: Buffer.alloc(0), isCut: false };
    throw error;
  } finally {
    response.destroy();
  }
}

function decompressed(response: IncomingMessage): Readable {
  const encoding = String(response.headers['content-encoding'] ?? 'identity')
    .trim()
    .toLowerCase();
  if (encoding === 'identity' || encoding === '') return response;
  if (!Object.hasOwn(DECOMPRESSORS, encoding)) throw new Error(`it is in the unknown encoding "${encoding.slice(0, 50)}"`);
  const decompressor = DECOMPRESSORS[encoding as keyof typeof DECOMPRESSORS]();
  response.on('error', (error) => decompressor.destroy(error));
  decompressor.on('error', () => response.destroy());
  return response.pipe(decompressor);
}
