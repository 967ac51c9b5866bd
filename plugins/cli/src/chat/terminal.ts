import type { Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';
import { ChatError, type ChatEvent, type Conversation } from './conversation.js';

/** The streams of a terminal, or of a pipe. */
interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean };
  readonly errors: Writable;
}

/** Characters of a tool's arguments or result that are shown. */
const MAX_SHOWN = 200;

/**
 * Runs a conversation until the input ends. On a terminal there is a prompt, and Ctrl-C stops the
 * answer or, between answers, ends the conversation. Otherwise each line is one turn.
 *
 * @returns the number of turns that failed.
 */
export async function runConversation(conversation: Conversation, { input, output, errors }: Terminal): Promise<number> {
  const interactive = input.isTTY === true && output.isTTY === true;
  const { createInterface } = await import('node:readline/promises'); // other commands do without it
  const lines = createInterface({ input, ...(interactive && { output, prompt: `\n${paint(output, 'bold', 'you')} › ` }) });
  let failures = 0;
  let turn: AbortController | undefined;
  let ended = false; // the input may end while an answer is shown
  lines.once('close', () => {
    ended = true;
  });
  lines.on('SIGINT', () => (turn ? turn.abort() : lines.close()));
  if (interactive) {
    const agent = paint(output, 'bold', conversation.agent);
    output.write(`Talking to ${agent}. Ctrl-C stops an answer, Ctrl-D ends the conversation.\n`);
    lines.prompt();
  }
  for await (const line of lines) {
    if (line.trim() !== '') {
      turn = new AbortController();
      try {
        await showAnswer(conversation.send(line, turn.signal), { output, errors });
      } catch (error) {
        if (turn.signal.aborted) output.write(`\n${paint(output, 'dim', '(stopped)')}\n`);
        else if (error instanceof ChatError) {
          failures++;
          errors.write(`plugboard chat: ${error.message}\n`);
        } else throw error;
      }
      turn = undefined;
    }
    if (interactive && !ended) lines.prompt();
  }
  if (interactive) output.write('\n');
  return failures;
}

async function showAnswer(answer: AsyncIterable<ChatEvent>, { output, errors }: Omit<Terminal, 'input'>): Promise<void> {
  let inText = false;
  const line = (text: string) => {
    output.write(`${inText ? '\n' : ''}${paint(output, 'dim', text)}\n`);
    inText = false;
  };
  for await (const event of answer) {
    switch (event.kind) {
      case 'text':
        if (inText || event.text.trim() !== '') output.write(event.text);
        inText ||= event.text.trim() !== '';
        break;
      case 'call':
        line(`→ ${event.name} ${truncate(event.input)}`);
        break;
      case 'result':
        line(`${event.isError ? '✗' : '←'} ${truncate(event.content)}`);
        break;
      case 'cut':
        line(`(the answer was cut: ${event.reason})`);
        break;
      case 'note':
        errors.write(`plugboard chat: ${event.text}\n`);
        break;
    }
  }
  if (inText) output.write('\n');
}

function truncate(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > MAX_SHOWN ? `${flat.slice(0, MAX_SHOWN)}…` : flat;
}

/** Styled if the output is a terminal and `NO_COLOR` is not set. */
function paint(output: Terminal['output'], format: 'bold' | 'dim', text: string): string {
  return styleText(format, text, { stream: output });
}
