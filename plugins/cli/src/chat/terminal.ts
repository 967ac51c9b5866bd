import type { Readable } from 'node:stream';
import { AnswerView, type ChatOutput } from './answer-view.js';
import type { Chat } from './chat.js';
import { BRACKETED_PASTE, PasteFilter } from './paste-filter.js';
import { PromptOutput } from './prompt-output.js';

/** The streams of a terminal, or of a pipe. */
interface Terminal extends ChatOutput {
  readonly input: Readable & { readonly isTTY?: boolean };
}

/**
 * Runs a chat until the input ends. On a terminal there is a prompt, pasted text is one message,
 * and Ctrl-C stops the answer, or clears what is typed; at an empty prompt it asks for a second
 * one, which ends the chat. Otherwise each line is one turn.
 *
 * @param open opens the chat that is shown in the view.
 * @returns whether all turns succeeded; on a terminal, always true.
 */
export async function runChat(open: (view: AnswerView) => Promise<Chat>, terminal: Terminal): Promise<boolean> {
  const { input, output } = terminal;
  const isTerminal = input.isTTY === true && output.isTTY === true;
  const view = new AnswerView(terminal, isTerminal && process.env.TERM !== 'dumb');
  const chat = await open(view);
  const { createInterface } = await import('node:readline/promises'); // other commands do without it
  const paste = isTerminal ? new PasteFilter(input) : undefined;
  const screen = isTerminal ? new PromptOutput(output) : undefined;
  const lines = createInterface(paste ? { input: paste, output: screen } : { input });
  const quit = Promise.withResolvers<'quit'>();
  let ended = false; // the input may end while an answer is shown
  lines.once('close', () => {
    ended = true;
  });
  output.once('error', () => {
    chat.stop(); // nobody reads the answer any more
    quit.resolve('quit');
    lines.close();
  });
  const promptText = () => {
    const { question } = chat;
    return question === undefined ? `\n${view.paint('bold', 'you')} › ` : `${view.paint('bold', question)} › `;
  };
  const prompt = () => {
    lines.setPrompt(promptText());
    if (screen) screen.isSilent = false;
    lines.prompt(true); // with what was typed meanwhile
  };
  let isAnswering = false;
  let isAsked = false; // for a second Ctrl-C
  const typedAhead: boolean[] = []; // of the lines that wait
  lines.on('line', () => {
    isAsked = false;
    typedAhead.push(screen?.isSilent === true);
    if (screen) screen.isSilent = true;
  });
  lines.on('SIGINT', () => {
    if (isAnswering) {
      if (!chat.stop()) quit.resolve('quit'); // it was stopped before
    } else if (lines.line !== '') {
      lines.write(null, { ctrl: true, name: 'e' });
      lines.write(null, { ctrl: true, name: 'u' });
    } else if (isAsked) {
      lines.close();
    } else {
      isAsked = true;
      output.write('\n(Ctrl-C again ends the chat)\n');
      prompt();
    }
  });
  const typed = lines[Symbol.asyncIterator](); // what is typed from now on waits
  try {
    if (paste) {
      output.write(`${BRACKETED_PASTE.on}Talking to ${view.paint('bold', chat.agent)}. /help lists the commands.\n`);
      output.write('Ctrl-C stops an answer, Ctrl-D ends the chat.\n');
      await chat.recall();
      prompt();
    }
    for await (const line of typed) {
      if (typedAhead.shift()) output.write(`${promptText()}${line}\n`); // it was not echoed
      isAnswering = true;
      const goesOn = await Promise.race([chat.handle(paste ? paste.restore(line) : line, isTerminal), quit.promise]);
      isAnswering = false;
      if (goesOn !== true) break;
      if (paste && !ended && typedAhead.length === 0) prompt();
    }
  } finally {
    lines.close();
    if (paste) output.write(`${BRACKETED_PASTE.off}\n${chat.farewell}`);
  }
  return isTerminal || chat.failures === 0; // a person has seen what failed
}
