import type { CommandAction, CommandTerminal } from '@plugboard/kernel/contracts';
import type { UnreadableRecording } from '../format/read-recording.js';
import { isRefused } from '../replay/outside.js';
import { asUnreadable, loadRecording } from './load-recording.js';
import { EXIT_WRONG_FILE, openConfiguration } from './open-configuration.js';
import { changeLines } from './print-changes.js';

/** `plugboard replay FILE`: runs one recorded turn again, and prints what changed. */
export function replayCommand(): CommandAction {
  return {
    summary: 'Runs a recorded turn offline, and prints what changed',
    positionals: ['FILE'],
    options: {
      against: { value: 'OTHER', description: 'another configuration file, to compare with' },
      json: { description: 'print JSON' },
    },
    async run(args, terminal) {
      const [file = ''] = args.positionals;
      const recording = await loadRecording(file).catch((error: UnreadableRecording) => refuse(terminal, file, error));
      if (!recording) return EXIT_WRONG_FILE;
      if (isRefused(recording)) {
        refuse(terminal, file, { message: 'has nothing to replay: a budget refused the turn before a model answered' });
        return EXIT_WRONG_FILE;
      }
      const server = await openConfiguration(args, terminal, false);
      if (!server) return EXIT_WRONG_FILE;
      const { id, agent, at } = recording.turn;
      try {
        const { changes } = await server.replay(recording);
        const changed = changes.length > 0;
        if (args.has('json')) terminal.print(JSON.stringify({ turn: id, agent, changed, changes }));
        else if (!changed) terminal.print(`${id} of ${agent}, ${new Date(at).toISOString()}: nothing changed`);
        else terminal.print([`${id} of ${agent}, ${new Date(at).toISOString()}:`, ...changeLines(changes)].join('\n'));
        return changed ? 1 : 0;
      } catch (error) {
        refuse(terminal, file, asUnreadable(error));
        return EXIT_WRONG_FILE;
      } finally {
        await server.close();
      }
    },
  };
}

function refuse(terminal: CommandTerminal, file: string, { message }: Pick<Error, 'message'>): undefined {
  terminal.note(`plugboard: ${file} ${message}`);
  return undefined;
}
