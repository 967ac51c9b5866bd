import { KeysUnavailable, noAnswer, tooLarge, wrongContent, wrongStatus } from './errors.js';

/** Maximum size of an answer in bytes, decompressed. Real ones have a few thousand. */
const MAX_BYTES = 1024 * 1024;

/**
 * Fetches JSON from an address of the issuer. Redirects are not followed, because the configuration
 * names the address.
 * @throws KeysUnavailable
 */
export async function fetchJson(address: URL, signal: AbortSignal): Promise<unknown> {
  try {
    const response = await fetch(address, { redirect: 'manual', headers: { accept: 'application/json, */*;q=0.5' }, signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw wrongStatus(address, response.status);
    }
    return parsed(await limited(response, address), address);
  } catch (error) {
    throw error instanceof KeysUnavailable ? error : noAnswer(address, error);
  }
}

async function limited({ body }: Response, address: URL): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) throw tooLarge(address, MAX_BYTES);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parsed(bytes: Buffer, address: URL): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw wrongContent(address, 'JSON');
  }
}
