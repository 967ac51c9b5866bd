import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';
import { ChatError, type Conversation, type Heard } from './conversation.js';

/** Where a conversation takes place. */
export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean };
  readonly errors: Writable;
}

/** The longest part of a tool's arguments or result that is shown. */
const SHOWN = 200;

/**
 * Talks until the input ends: on a terminal with a prompt, where Ctrl-C stops an answer and, between answers, ends the conversation; otherwise each line is a turn.
 *
 * @returns how many turns failed.
 */
export async function talk(conversation: Conversation, { input, output, errors }: Terminal): Promise<number> {
  const interactive = input.isTTY === true && output.isTTY === true;
  const lines = createInterface({ input, ...(interactive ? { output, prompt: `\n${paint(output, 'bold', 'you')} › ` } : {}) });
  let failures = 0;
  let turn: AbortController | undefined;
  lines.on('SIGINT', () => (turn ? turn.abort() : lines.close()));
  if (interactive) {
    output.write(
      `Talking to ${paint(output, 'bold', conversation.agent)}. Ctrl-C stops an answer, Ctrl-D ends the conversation.\n`,
    );
    lines.prompt();
  }
  for await (const line of lines) {
    if (line.trim() !== '') {
      turn = new AbortController();
      try {
        await hearOut(conversation.say(line, turn.signal), output);
      } catch (error) {
        if (turn.signal.aborted) output.write(`\n${paint(output, 'dim', '(stopped)')}\n`);
        else if (error instanceof ChatError) {
          failures++;
          errors.write(`plugboard chat: ${error.message}\n`);
        } else throw error;
      }
      turn = undefined;
    }
    if (interactive) lines.prompt();
  }
  if (interactive) output.write('\n');
  return failures;
}

async function hearOut(answer: AsyncIterable<Heard>, output: Terminal['output']): Promise<void> {
  let inText = false;
  const line = (text: string) => {
    output.write(`${inText ? '\n' : ''}${paint(output, 'dim', text)}\n`);
    inText = false;
  };
  for await (const heard of answer) {
    if (heard.kind === 'text') {
      if (inText || heard.text.trim() !== '') output.write(heard.text);
      inText ||= heard.text.trim() !== '';
    } else if (heard.kind === 'call') line(`→ ${heard.name} ${shorten(heard.input)}`);
    else if (heard.kind === 'result') line(`${heard.isError ? '✗' : '←'} ${shorten(heard.content)}`);
    else line(`(the answer was cut: ${heard.reason})`);
  }
  if (inText) output.write('\n');
}

function shorten(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > SHOWN ? `${flat.slice(0, SHOWN)}…` : flat;
}

function paint(output: Terminal['output'], format: 'bold' | 'dim', text: string): string {
  return output.isTTY ? styleText(format, text, { validateStream: false }) : text;
}
