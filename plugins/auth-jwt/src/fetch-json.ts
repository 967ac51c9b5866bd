import { KeysUnavailable, noAnswer, tooLarge, wrongContent, wrongStatus } from './errors.js';

/** Bytes of an answer, unpacked. Real ones have some thousand. */
const LARGEST = 1024 * 1024;

/**
 * What an address of the issuer's answers. Redirects are not followed: the address is the configuration's to name.
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
    if (size > LARGEST) throw tooLarge(address, LARGEST);
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
