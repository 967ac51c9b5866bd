import type { CommandAction, CommandArguments } from '@plugboard/kernel/contracts';
import { Chat, known } from '../chat/chat.js';
import { type ChatAgents, ChatError } from '../chat/conversation.js';
import { openInProcess } from '../chat/in-process.js';
import { openOnServer } from '../chat/on-server.js';
import { StatusError } from '../chat/server-client.js';
import { runChat } from '../chat/terminal.js';
import { CONFIG_OPTION, configFile } from '../command/config-option.js';

/** Milliseconds that the plugins have to stop when the chat ends. */
const MAX_CLOSE_TIME = 5_000;

/** Talks to an agent in the terminal. Other input than a terminal's is one turn a line. */
export const chat: CommandAction = {
  summary: 'Talks to an agent, in this process or on a running server',
  positionals: ['[AGENT]'],
  options: {
    config: CONFIG_OPTION,
    url: {
      value: 'URL',
      description: 'a running server, for example http://127.0.0.1:8080; its token is read from PLUGBOARD_TOKEN',
    },
    session: {
      value: 'KEY',
      description: 'the session to continue or to begin; without --url, it is kept in the session store of the file',
    },
  },
  async run(args) {
    // Timers of the host and of plugins do not keep the process alive, but a waiting chat must
    // stay.
    const awake = setInterval(() => undefined, 2 ** 30);
    let agents: ChatAgents | undefined;
    try {
      const opened = await open(args);
      agents = opened;
      const succeeded = await runChat(async (view) => new Chat(opened, view, await startOf(args, opened)), {
        input: process.stdin,
        output: process.stdout,
        errors: process.stderr,
      });
      return succeeded ? 0 : 1;
    } catch (error) {
      if (!(error instanceof ChatError)) throw error;
      process.stderr.write(`plugboard chat: ${error.message}\n`);
      return 1;
    } finally {
      await Promise.race([agents?.close(), new Promise((resolve) => setTimeout(resolve, MAX_CLOSE_TIME))]);
      clearInterval(awake);
    }
  },
};

async function open(args: CommandArguments): Promise<ChatAgents> {
  const url = args.text('url');
  return url === undefined
    ? openInProcess(configFile(args), args.has('session'))
    : openOnServer(url, process.env.PLUGBOARD_TOKEN || undefined);
}

/** @throws ChatError if the agent is unknown. */
async function startOf(args: CommandArguments, agents: ChatAgents): Promise<{ agent: string; session: string | undefined }> {
  const [name] = args.positionals;
  const session = args.text('session');
  try {
    const targets = await agents.targets();
    return { agent: name === undefined ? (targets[0]?.name ?? '') : known(name, targets), session };
  } catch (error) {
    // A server without the list, or a token that may not read it. The turn will tell.
    const hasNoList = error instanceof StatusError && (error.status === 403 || error.status === 404);
    if (name === undefined || !hasNoList) throw error;
    return { agent: name, session };
  }
}
