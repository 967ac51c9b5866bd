import { ProtocolError } from '@plugboard/openai-protocol';

/**
 * The error that a caller would get for what the work throws: the status, the code and the place,
 * and the sentence.
 */
export function errorOf(work: () => unknown): { status: number; code: unknown; param: unknown; message: string } {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { message, code, param } = error.body.error;
    return { status: error.status, code, param, message };
  }
  throw new Error('nothing was refused');
}
