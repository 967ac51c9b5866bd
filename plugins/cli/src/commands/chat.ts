import type { CommandAction, CommandArguments } from '@plugboard/kernel/contracts';
import { ChatError, type Conversation } from '../chat/conversation.js';
import { openInProcess } from '../chat/in-process.js';
import { openOnServer } from '../chat/on-server.js';
import { runConversation } from '../chat/terminal.js';
import { CONFIG_OPTION, configFile } from '../command/config-option.js';

/**
 * Runs a conversation with an agent in the terminal. If standard input is not a terminal, each of
 * its lines is one turn.
 */
export const chat: CommandAction = {
  summary: 'Talks to an agent, in this process or on a running server',
  positionals: ['[AGENT]'],
  options: {
    config: CONFIG_OPTION,
    url: {
      value: 'URL',
      description: 'a running server, for example http://127.0.0.1:8080; its token is read from PLUGBOARD_TOKEN',
    },
  },
  async run(args) {
    // Timers of the host and of plugins do not keep the process alive, but a waiting chat must
    // stay.
    const awake = setInterval(() => undefined, 2 ** 30);
    try {
      const conversation = await open(args);
      try {
        return (await runConversation(conversation, { input: process.stdin, output: process.stdout, errors: process.stderr })) > 0
          ? 1
          : 0;
      } finally {
        await conversation.close();
      }
    } catch (error) {
      if (!(error instanceof ChatError)) throw error;
      process.stderr.write(`plugboard chat: ${error.message}\n`);
      return 1;
    } finally {
      clearInterval(awake);
    }
  },
};

function open(args: CommandArguments): Promise<Conversation> {
  const [agent] = args.positionals;
  const url = args.text('url');
  return url === undefined
    ? openInProcess(configFile(args), agent)
    : openOnServer(url, agent, process.env.PLUGBOARD_TOKEN || undefined);
}
