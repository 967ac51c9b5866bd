import type { Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';

/**
 * Makes a stream that decompresses a response, if it is compressed. Requests ask for `identity`,
 * but some gateways compress anyway.
 *
 * @returns undefined for a response that is not compressed; the name of an encoding that is not
 * known.
 */
export function decompressorFor(contentEncoding: string | string[] | undefined): Transform | string | undefined {
  const encoding = String(contentEncoding ?? '')
    .trim()
    .toLowerCase();
  switch (encoding) {
    case '':
    case 'identity':
    case 'none':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      // Events are shown as they arrive, and a body may lack its trailer.
      return createGunzip({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH });
    case 'deflate':
      return createInflate({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH });
    case 'br':
      return createBrotliDecompress({
        flush: constants.BROTLI_OPERATION_FLUSH,
        finishFlush: constants.BROTLI_OPERATION_FLUSH,
      });
    case 'zstd':
      return createZstdDecompress({ flush: constants.ZSTD_e_flush, finishFlush: constants.ZSTD_e_flush });
    default:
      return encoding;
  }
}
