import { type CommandAction, CommandError } from '@plugboard/kernel/contracts';
import { secretProblem } from '../tokens/configured-secret.js';
import { digestOf } from '../tokens/digest.js';

/** Maximum size of the input in bytes: more than a token has. */
const LIMIT = 4096;

export const hash: CommandAction = {
  summary: 'Prints the SHA-256 of the token on standard input, for the configuration',
  options: {},
  async run(_, terminal) {
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of terminal.input) {
      const bytes = Buffer.from(piece as Uint8Array);
      size += bytes.length;
      if (size > LIMIT) throw new CommandError('the input is too long for a token');
      pieces.push(bytes);
    }
    const token = Buffer.concat(pieces)
      .toString('latin1')
      .replace(/\r?\n$/, '');
    const problem = secretProblem(token);
    if (problem !== undefined) throw new CommandError(problem);
    terminal.print(digestOf(token));
    return 0;
  },
};
