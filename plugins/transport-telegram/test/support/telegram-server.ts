import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Update } from 'grammy/types';
import { formattingFault } from './formatting-fault.js';

/** A token in the form of Telegram's. Not a real one. */
export const TOKEN = '4711:AAE-scripted_token_of_the_tests_0001';
export const BOT = { id: 4711, is_bot: true, first_name: 'Plug', username: 'PlugBot' } as const;

/** A call that the server received, in the order of arrival. */
export interface ApiCall {
  readonly method: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A message that the server took. */
export interface SentMessage {
  readonly chat_id: number;
  readonly message_thread_id?: number;
  readonly text: string;
  readonly parse_mode?: 'HTML';
  readonly reply_markup?: { readonly inline_keyboard: readonly (readonly { text: string; callback_data: string }[])[] };
  readonly reply_parameters?: { readonly message_id: number };
}

/** What the server answers to one call in place of its usual answer. */
export type ScriptedAnswer =
  | { readonly code: number; readonly description: string; readonly parameters?: Readonly<Record<string, number>> }
  /** Does what was asked, and closes the socket without an answer. */
  | 'done-and-closed'
  /** Closes the socket and does nothing. */
  | 'closed'
  /** Never answers, and does nothing. */
  | 'silent'
  /** Answers with the page of a proxy in place of JSON. */
  | 'html';

/** `429` of a chat that gets too much. */
export const flood = (seconds: number): ScriptedAnswer => ({
  code: 429,
  description: `Too Many Requests: retry after ${seconds}`,
  parameters: { retry_after: seconds },
});

/**
 * The Bot API of Telegram over real HTTP, for one bot: it keeps updates until an offset confirms
 * them, answers long polls, checks what it is sent, and records it.
 */
export class TelegramServer {
  readonly calls: ApiCall[] = [];
  /** The messages that were taken. */
  readonly messages: SentMessage[] = [];
  /** Updates that no offset has confirmed. */
  updates: Update[] = [];
  /** Bytes of files by their paths, and their paths by their ids. */
  readonly files = new Map<string, Uint8Array>();
  /** Called before a call is handled: a test can wait in it, or kill somebody. */
  onCall: ((call: ApiCall) => Promise<void> | void) | undefined;
  /** Called after an answer was sent. */
  onAnswered: ((call: ApiCall) => void) | undefined;
  /** The webhook that is set; empty for none. */
  webhook: { url: string; secret?: string | undefined } = { url: '' };
  /** The most polls that were open at the same time. */
  maxPolls = 0;
  token = TOKEN;
  /** Seconds that a poll waits at most, however long it asks for. */
  longestPoll = 50;
  readonly #scripts = new Map<string, ScriptedAnswer[]>();
  readonly #server: Server;
  #poll: { readonly end: (isConflict: boolean) => void } | undefined;
  #polls = 0;
  #nextUpdate = 1001;
  #nextMessage = 1;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
  }

  /** @param port a free one by default. A server that was closed can begin again at its own. */
  static async start(port = 0): Promise<TelegramServer> {
    const server = new TelegramServer();
    await once(server.#server.listen(port, '127.0.0.1'), 'listening');
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Answers the next calls of a method so, one after the other. */
  answer(method: string, ...answers: readonly ScriptedAnswer[]): void {
    this.#scripts.set(method, [...(this.#scripts.get(method) ?? []), ...answers]);
  }

  /** The calls of a method. */
  of(method: string): readonly ApiCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** Adds an update, and ends the poll that waits for it. @returns its id. */
  push(update: Omit<Update, 'update_id'>): number {
    const update_id = this.#nextUpdate++;
    this.updates.push({ update_id, ...update });
    this.#poll?.end(false);
    return update_id;
  }

  /** Restarts the ids of updates, as Telegram does after a week without any. */
  restartIds(first: number): void {
    this.#nextUpdate = first;
  }

  messageId(): number {
    return this.#nextMessage++;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', 'http://telegram');
    const [, kind = '', token = '', rest = ''] = /^\/(bot|file\/bot)([^/]+)\/(.*)$/.exec(pathname) ?? [];
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const payload = body === '' ? {} : (JSON.parse(body) as Record<string, unknown>);
    const call = { method: kind === 'bot' ? rest : 'file', payload: kind === 'bot' ? payload : { path: rest } };
    this.calls.push(call);
    await this.onCall?.(call);
    if (response.destroyed) return; // the caller has gone
    if (token !== this.token) return void fail(response, 401, 'Unauthorized');
    const scripted = this.#scripts.get(call.method)?.shift();
    if (scripted === 'silent') return;
    if (scripted === 'closed') return void response.destroy();
    if (scripted === 'html') return void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
    if (typeof scripted === 'object') return void fail(response, scripted.code, scripted.description, scripted.parameters);
    if (kind !== 'bot') return void this.#sendFile(response, decodeURIComponent(rest));
    const result = await this.#run(call, response);
    if (scripted === 'done-and-closed' || response.destroyed) return void response.destroy();
    if (result instanceof Refusal) return void fail(response, result.code, result.message);
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ok: true, result }));
    this.onAnswered?.(call);
  }

  async #run({ method, payload }: ApiCall, response: ServerResponse): Promise<unknown> {
    switch (method) {
      case 'getMe':
        return BOT;
      case 'getUpdates':
        return this.#getUpdates(payload, response);
      case 'sendMessage':
        return this.#sendMessage(payload as unknown as SentMessage);
      case 'sendMessageDraft':
        return this.#sendDraft(payload);
      case 'sendChatAction':
      case 'answerCallbackQuery':
      case 'editMessageReplyMarkup':
        return true;
      case 'getFile': {
        const path = `photos/${String(payload.file_id)}`;
        if (!this.files.has(path)) return new Refusal(400, 'Bad Request: invalid file_id');
        return { file_id: payload.file_id, file_unique_id: payload.file_id, file_path: path };
      }
      case 'setWebhook':
        this.webhook = { url: String(payload.url), secret: payload.secret_token as string | undefined };
        return true;
      case 'getWebhookInfo':
        return { url: this.webhook.url, has_custom_certificate: false, pending_update_count: this.updates.length };
      default:
        return new Refusal(404, 'Not Found');
    }
  }

  /** Confirms what is before the offset, and waits for an update. A second poll ends the first. */
  async #getUpdates(payload: ApiCall['payload'], response: ServerResponse): Promise<unknown> {
    if (this.webhook.url !== '') {
      return new Refusal(
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
      );
    }
    const offset = Number(payload.offset ?? 0);
    if (offset > 0) this.updates = this.updates.filter(({ update_id }) => update_id >= offset);
    this.#poll?.end(true);
    this.#polls++;
    this.maxPolls = Math.max(this.maxPolls, this.#polls);
    try {
      if (this.updates.length === 0 && Number(payload.timeout ?? 0) > 0) {
        const { promise, resolve } = Promise.withResolvers<boolean>();
        const poll = { end: resolve };
        this.#poll = poll;
        const timer = setTimeout(() => resolve(false), 1000 * Math.min(Number(payload.timeout), this.longestPoll));
        response.once('close', () => resolve(false));
        const isConflict = await promise;
        clearTimeout(timer);
        if (this.#poll === poll) this.#poll = undefined;
        if (isConflict) {
          return new Refusal(
            409,
            'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
          );
        }
      }
      return this.updates.slice(0, 100);
    } finally {
      this.#polls--;
    }
  }

  #sendMessage(message: SentMessage): unknown {
    const fault = formattingFault(message.text, message.parse_mode);
    if (fault !== undefined) return new Refusal(400, fault);
    this.messages.push(message);
    return { message_id: this.messageId(), date: 1, chat: { id: message.chat_id, type: 'private' }, text: message.text };
  }

  #sendDraft({ chat_id, draft_id, text = '', parse_mode }: ApiCall['payload']): unknown {
    if (Number(chat_id) < 0) return new Refusal(400, 'Bad Request: drafts can be sent to private chats only');
    if (!Number.isInteger(draft_id) || draft_id === 0) return new Refusal(400, 'Bad Request: invalid draft_id');
    const fault = text === '' ? undefined : formattingFault(String(text), parse_mode);
    return fault === undefined ? true : new Refusal(400, fault);
  }

  #sendFile(response: ServerResponse, path: string): void {
    const bytes = this.files.get(path);
    if (bytes === undefined) return void fail(response, 404, 'Not Found');
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(bytes);
  }
}

class Refusal {
  constructor(
    readonly code: number,
    readonly message: string,
  ) {}
}

function fail(response: ServerResponse, code: number, description: string, parameters?: Readonly<Record<string, number>>): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ ok: false, error_code: code, description, ...(parameters && { parameters }) }));
}
