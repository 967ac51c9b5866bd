import { type CommandAction, CommandError } from '@plugboard/kernel';
import { digestOf } from '../digest.js';
import { faultOfPlain } from '../plain-token.js';

/** Bytes that are read: more than a token has. */
const LIMIT = 4096;

export const hash: CommandAction = {
  summary: 'Reads a token on standard input, and prints its SHA-256 for the configuration',
  options: {},
  async run(_, terminal) {
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of terminal.input) {
      const bytes = Buffer.from(piece as Uint8Array);
      size += bytes.length;
      if (size > LIMIT) throw new CommandError('what stands on standard input is too long for a token');
      pieces.push(bytes);
    }
    const token = Buffer.concat(pieces)
      .toString('latin1')
      .replace(/\r?\n$/, '');
    const fault = faultOfPlain(token);
    if (fault !== undefined) throw new CommandError(fault);
    terminal.print(digestOf(token));
    return 0;
  },
};
