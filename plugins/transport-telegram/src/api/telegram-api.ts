import { MAX_IMAGE } from '@plugboard/channel-kit';
import type { Clock } from '@plugboard/kernel';
import type { Api, GrammyError, HttpError, RawApi } from 'grammy';
import { TelegramError } from './telegram-error.js';

/** Milliseconds that a call may take. A long poll has a limit of its own. */
const CALL_LIMIT = 15_000;
const DOWNLOAD_LIMIT = 60_000;
const TELEGRAM = 'https://api.telegram.org';

type Method = keyof RawApi;
/** Methods to which grammY gives the signal in place of parameters. */
type Bare = 'getMe' | 'getWebhookInfo';
type Payload<M extends Method> = M extends Bare ? Record<string, never> : Parameters<RawApi[M]>[0];
type Result<M extends Method> = Awaited<ReturnType<RawApi[M]>>;

/** The Bot API through grammY's client, which is loaded at the first call. */
export class TelegramApi {
  readonly #token: string;
  readonly #root: string;
  readonly #clock: Clock;
  #client: Promise<Api> | undefined;

  constructor({ token, apiRoot = TELEGRAM }: { readonly token: string; readonly apiRoot?: string | undefined }, clock: Clock) {
    this.#token = token;
    this.#root = apiRoot.endsWith('/') ? apiRoot.slice(0, -1) : apiRoot;
    this.#clock = clock;
  }

  /** @param limit milliseconds until the call is given up. @throws TelegramError */
  async call<M extends Method>(method: M, payload: Payload<M>, signal: AbortSignal, limit = CALL_LIMIT): Promise<Result<M>> {
    this.#client ??= this.#load();
    const { raw } = await this.#client;
    const run = raw[method] as (payload: unknown, signal: unknown) => Promise<Result<M>>;
    return await this.#within(limit, signal, (both) =>
      method === 'getMe' || method === 'getWebhookInfo' ? run(both, undefined) : run(payload, both),
    );
  }

  /** Downloads a file of the bot. @returns undefined if it is gone or too large. */
  async download(fileId: string, signal: AbortSignal): Promise<Uint8Array | undefined> {
    let path: string | undefined;
    try {
      ({ file_path: path } = await this.call('getFile', { file_id: fileId }, signal));
    } catch (error) {
      if (error instanceof TelegramError && error.code === 400) return undefined;
      throw error;
    }
    if (path === undefined) return undefined;
    const url = `${this.#root}/file/bot${this.#token}/${path.split('/').map(encodeURIComponent).join('/')}`;
    return this.#within(DOWNLOAD_LIMIT, signal, async (both) => {
      const response = await fetch(url, { signal: both, redirect: 'error' });
      if (response.status === 404) return void response.body?.cancel();
      if (!response.ok || response.body === null) throw new TelegramError(response.status, 'the download of a file fails');
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      for await (const chunk of response.body) {
        bytes += chunk.length;
        if (bytes > MAX_IMAGE) return undefined;
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    });
  }

  async #load(): Promise<Api> {
    const { Api } = await import('grammy');
    return new Api(this.#token, { apiRoot: this.#root, baseFetchConfig: { redirect: 'error' } });
  }

  /** @throws TelegramError instead of grammY's errors, which contain the token and the payload. */
  async #within<T>(limit: number, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    const timer = this.#clock.after(limit, () => late.abort());
    try {
      return await run(AbortSignal.any([signal, late.signal]));
    } catch (error) {
      throw telegramError(error, new URL(this.#root).host, late.signal.aborted ? `none within ${limit / 1000} s` : undefined);
    } finally {
      timer.cancel();
    }
  }
}

function telegramError(error: unknown, host: string, late: string | undefined): TelegramError {
  if (error instanceof TelegramError) return error;
  const { name } = error as Error;
  if (name === 'GrammyError') {
    const { error_code, description, parameters } = error as GrammyError;
    return new TelegramError(error_code, description, parameters.retry_after, parameters.migrate_to_chat_id);
  }
  if (late !== undefined) return new TelegramError(undefined, late, undefined, undefined, true);
  const cause = name === 'HttpError' ? (error as HttpError).error : (error as Error).cause;
  const { code, type } = (cause ?? error) as { readonly code?: unknown; readonly type?: unknown };
  return new TelegramError(undefined, `${code ?? type ?? 'the connection failed'} (${host})`);
}
