import { eventually } from '@plugboard/testing';
import type { Test } from 'tap';
import { TestServer } from '../../../test/support/test-server.js';
import { Samples } from './samples.js';

/** What every test server has besides what a test names. */
export const METRICS = 'plugins: { metrics: { port: 0 } }\n';

/** A whole server with the metrics on. */
export class MeasuredServer {
  private constructor(readonly app: TestServer) {}

  static async start(t: Test, yaml: string, options: Parameters<typeof TestServer.start>[2] = {}): Promise<MeasuredServer> {
    return new MeasuredServer(await TestServer.start(t, yaml, options));
  }

  /** Where the metrics are now: a reload may have moved them. */
  get address(): string {
    const lines = this.app.started.logs.filter(({ msg, entry }) => msg === 'listening' && entry === 'plugins.metrics');
    return String(lines.at(-1)?.address);
  }

  async scrape(headers: Readonly<Record<string, string>> = {}): Promise<Samples> {
    return new Samples(await (await fetch(this.address, { headers })).text());
  }

  /** Scrapes until a page fulfils a condition: one is up to a second old. @returns that page. */
  async until(condition: (page: Samples) => boolean): Promise<Samples> {
    let page = new Samples('');
    await eventually(async () => {
      page = await this.scrape();
      return condition(page);
    });
    return page;
  }

  /** Scrapes when this many turns have been counted. */
  turns(count: number): Promise<Samples> {
    return this.until((page) => page.value('plugboard_turns_total') >= count);
  }
}
