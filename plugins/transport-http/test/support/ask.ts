import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/** The body of a refusal without an error formatter. */
export interface ErrorBody {
  readonly error: { readonly message: string; readonly code: string | null };
}

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** What stands under `error`. */
  readonly error: ErrorBody['error'];
}

/** Asks with any headers, Host and Origin among them, which `fetch` keeps for itself. */
export function ask(url: string, { method = 'GET', headers = {}, body = '' }: Asked = {}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, async (response) => {
      const received = await text(response);
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers as Answered['headers'],
        text: received,
        get error() {
          return (JSON.parse(received) as ErrorBody).error;
        },
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
