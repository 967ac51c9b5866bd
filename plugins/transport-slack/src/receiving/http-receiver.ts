import { parse } from 'node:querystring';
import type { Clock, Logger, PluginContext } from '@plugboard/kernel';
import { HttpError, type HttpReply, type HttpRequest, type HttpRoute } from '@plugboard/transport-http';
import { type Fields, fieldsOf } from '../base/fields.js';
import type { Bolt } from '../web-api/web-client.js';
import type { Process } from './bolt-app.js';

interface Receiving {
  readonly bolt: Bolt;
  readonly process: Process;
}

/** Receives by HTTP: `POST /channels/<entry>`, signed by Slack. */
export class HttpReceiver {
  readonly #secret: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  #receiving: Receiving | undefined;
  /** Whether the last request had a wrong signature: a row of them has one line. */
  #isForged = false;

  constructor(secret: string, { clock, log }: Pick<PluginContext, 'clock' | 'log'>) {
    this.#secret = secret;
    this.#clock = clock;
    this.#log = log;
  }

  route(entry: string): HttpRoute {
    return {
      method: 'POST',
      path: `/channels/${entry.replaceAll(/[{}()[\]+?!:*\\]/g, '\\$&')}`,
      access: 'public',
      body: 'bytes',
      startsWork: true,
      handle: (request) => this.#handle(request, entry),
    };
  }

  /** Takes requests. Before that, and after `close`, Slack is asked to come again. */
  open(receiving: Receiving): void {
    this.#receiving = receiving;
  }

  close(): void {
    this.#receiving = undefined;
  }

  async #handle({ body, headers, note }: HttpRequest, entry: string): Promise<HttpReply> {
    const receiving = this.#receiving;
    if (receiving === undefined) throw new HttpError(503, 'The channel does not run.', { code: 'unavailable' });
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(body as Uint8Array);
    if (!this.#isSigned(receiving.bolt, text, headers)) {
      if (!this.#isForged)
        this.#log.warn('a request has a wrong signature; if Slack sent it, copy the signing secret of the app');
      this.#isForged = true;
      throw new HttpError(401, 'The signature is wrong, or older than five minutes.', { code: 'invalid_signature' });
    }
    this.#isForged = false;
    note({ token_name: entry });
    const delivered = parsed(text, String(headers['content-type']));
    if (delivered === undefined) throw new HttpError(400, 'The body is not an object.', { code: 'invalid_body' });
    if (delivered.type === 'url_verification') return { status: 200, body: { challenge: String(delivered.challenge) } };
    try {
      await receiving.process(delivered);
      return { status: 200 };
    } catch (error) {
      note({ not_stored: String(error) });
      throw new HttpError(503, 'The event could not be stored.', { code: 'unavailable' });
    }
  }

  #isSigned({ isValidSlackRequest }: Bolt, body: string, headers: HttpRequest['headers']): boolean {
    const signature = headers['x-slack-signature'];
    const timestamp = Number(headers['x-slack-request-timestamp']);
    if (typeof signature !== 'string') return false;
    return isValidSlackRequest({
      signingSecret: this.#secret,
      body,
      headers: { 'x-slack-signature': signature, 'x-slack-request-timestamp': timestamp },
      nowMilliseconds: this.#clock.now(),
    });
  }
}

/** Events are JSON; commands are a form; presses are JSON in the field `payload` of a form. */
function parsed(text: string, type: string): Fields | undefined {
  try {
    if (!type.startsWith('application/x-www-form-urlencoded')) return objectOf(JSON.parse(text));
    const form = { ...parse(text) };
    return typeof form.payload === 'string' ? objectOf(JSON.parse(form.payload)) : form;
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): Fields | undefined {
  const fields = fieldsOf(value);
  return fields === value ? fields : undefined;
}
