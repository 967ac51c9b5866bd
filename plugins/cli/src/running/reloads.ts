import { audit } from '@plugboard/kernel';
import { type HostServer, ReloadError, type ReloadResult } from '@plugboard/kernel/internal';
import { describeChange } from '../server/describe-change.js';
import { recordConfig } from '../server/running-config.js';

/**
 * Reloads a server on request, and logs the outcome.
 *
 * Requests that come while a reload runs are served together by one more reload, so that the last
 * change is never missed.
 */
export class Reloads {
  readonly #server: HostServer;
  readonly #onRead: () => void;
  #running = false;
  #requested: string | undefined;

  /** @param onRead called when the configuration was read again. */
  constructor(server: HostServer, onRead: () => void) {
    this.#server = server;
    this.#onRead = onRead;
  }

  /** @param cause the signal, or what else asks for it. */
  request(cause: string): void {
    this.#requested = cause;
    if (!this.#running) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (let cause = this.#requested; cause !== undefined; cause = this.#requested) {
      this.#requested = undefined;
      const result = await this.#server.reload();
      this.#onRead();
      if (this.#server.host.phase === 'running') this.#report(cause, result);
      else this.#server.log.info(`${cause}: the configuration is not applied, because the server is stopping`);
    }
    this.#running = false;
  }

  #report(cause: string, { entries, failures, changes, refused, milliseconds }: ReloadResult): void {
    const { log } = this.#server;
    for (const failure of failures) log.error({ err: failure.cause }, failure.message);
    if (entries.length > 0) audit(log, 'configuration_reloaded', { entries }, 'entries read their own files again');
    if (refused !== undefined) {
      const reasons = refused.message.split('\n');
      for (const line of reasons) log.error(line);
      if (refused instanceof ReloadError) for (const { cause } of refused.failures) log.debug({ err: cause }, 'the cause');
      log.error(`${cause}: the changed configuration was refused; the previous one stays in effect`);
      recordConfig(this.#server, { outcome: 'refused', reasons });
    } else if (changes.length === 0) {
      log.info(`${cause}: the configuration has not changed`);
      recordConfig(this.#server, { outcome: 'unchanged' });
    } else {
      const fields = { changes: changes.map(describeChange), milliseconds: Math.round(milliseconds) };
      recordConfig(this.#server, { outcome: 'applied' });
      audit(log, 'configuration_changed', fields, `${cause}: the changed configuration was applied`);
    }
  }
}
