import type { ChatRequest, Script } from '@plugboard/testing';
import type { Entry } from './server-files.js';

/** The model: it sends the mail that it is asked for, and says what it was told about a mail. */
export function modelOf({ messages, tools }: ChatRequest): Script {
  const [, verb, subject = ''] =
    /^(send|ask) (\S+)$/.exec(String(messages.findLast(({ role }) => role === 'user')?.content)) ?? [];
  if (verb === 'send' && messages.at(-1)?.role !== 'tool') {
    const [tool] = tools as readonly [{ readonly function: { readonly name: string } }];
    return { toolCalls: [{ name: tool.function.name, arguments: { subject } }] };
  }
  return { text: `${subject}: ${toldIn(messages, subject) ?? 'nothing'}` };
}

/** The last result of a call about a mail. */
function toldIn(messages: ChatRequest['messages'], subject: string): string | undefined {
  let told: string | undefined;
  const ids = new Set<unknown>();
  for (const { role, content, tool_calls: calls, tool_call_id: id } of messages) {
    if (role === 'tool' && ids.has(id)) told = String(content);
    for (const call of (calls ?? []) as readonly { readonly id: string; readonly function: { readonly arguments: string } }[])
      if (JSON.parse(call.function.arguments).subject === subject) ids.add(call.id);
  }
  return told;
}

/** The connection broke off. */
class Cut extends Error {}

/** Mails of one session, so that none grows long. */
const MAILS = 8;

/**
 * A client that sends one mail after the other. If it gets no answer, it asks what
 * became of its mail, and sends it again if the model knows of no call: as a person would.
 */
export class Sender {
  /** What it was told of its mails at last, by subject. */
  readonly told = new Map<string, string>();
  /** Answers that nothing explains. */
  readonly wrong: string[] = [];
  readonly #name: string;
  readonly entry: Entry;
  #count = 0;
  /** The mail that nothing is known about. */
  #open: string | undefined;
  #verb: 'send' | 'ask' = 'send';

  constructor(name: string, entry: Entry) {
    this.#name = name;
    this.entry = entry;
  }

  /**
   * Does the next thing.
   * @param sends whether to send another mail if nothing is left to do.
   */
  async play(url: string, sends = true): Promise<'done' | 'cut' | 'settled'> {
    if (this.#open === undefined) {
      if (!sends) return 'settled';
      this.#open = `${this.#name}-${++this.#count}`;
      this.#verb = 'send';
    }
    try {
      this.#read(this.#open, await this.#say(url, `${this.#verb} ${this.#open}`));
      return 'done';
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      this.#verb = 'ask';
      return 'cut';
    }
  }

  #read(subject: string, text: string): void {
    const told = text.startsWith(`${subject}: `) ? text.slice(subject.length + 2) : undefined;
    if (told === undefined) this.wrong.push(`${this.#verb} ${subject}: ${text}`);
    if (told === 'nothing') this.#verb = 'send';
    else {
      this.told.set(subject, told ?? '');
      this.#open = undefined;
    }
  }

  async #say(url: string, content: string): Promise<string> {
    const session_id = `${this.#name}.${Math.floor(this.#count / MAILS)}`;
    const body = { model: this.entry, session_id, messages: [{ role: 'user', content }] };
    try {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
      const answer = (await response.json()) as { readonly choices?: [{ readonly message: { readonly content: string } }] };
      return answer.choices?.[0].message.content ?? `${response.status} ${JSON.stringify(answer)}`;
    } catch (error) {
      throw new Cut(content, { cause: error });
    }
  }
}
