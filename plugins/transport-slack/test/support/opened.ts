import type { ChannelInbox, Receipt } from '@plugboard/channel-kit';
import { definePlugin } from '@plugboard/kernel';
import { ManualClock, type TestContext, testContext } from '@plugboard/testing';
import type { Test } from 'tap';
import type { SlackImage, SlackTo } from '../../src/base/slack.js';
import { configSchema, type SlackConfig } from '../../src/config.js';
import type { SlackIncoming } from '../../src/receiving/arrival.js';
import { HttpReceiver } from '../../src/receiving/http-receiver.js';
import { SlackPlatform } from '../../src/slack-platform.js';
import { APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackServer } from './slack-server.js';

/** An inbox whose receipts a test decides. It knows ids that it has taken. */
export class TestInbox implements ChannelInbox<SlackTo, SlackImage> {
  /** What was taken, in order. */
  readonly taken: SlackIncoming[] = [];
  /** `connected …` and `failed …`, in order. */
  readonly states: string[] = [];
  readonly #ids = new Set<string>();
  /** Decides of a message. It may wait, or throw. */
  decide: (message: SlackIncoming) => Receipt | Promise<Receipt> = ({ isPrivate, isAddressed }) =>
    isPrivate || isAddressed ? 'taken' : 'ignored';

  async receive(messages: readonly SlackIncoming[]): Promise<readonly Receipt[]> {
    const receipts: Receipt[] = [];
    for (const message of messages) {
      const receipt = message.ids.some((id) => this.#ids.has(id)) ? 'known' : await this.decide(message);
      receipts.push(receipt);
      if (receipt !== 'taken') continue;
      this.taken.push(message);
      for (const id of message.ids) this.#ids.add(id);
    }
    return receipts;
  }

  connected(account?: string): void {
    this.states.push(`connected ${account}`);
  }

  failed(reason: string): void {
    this.states.push(`failed ${reason}`);
  }
}

export interface Opened {
  readonly slack: SlackServer;
  readonly inbox: TestInbox;
  readonly platform: SlackPlatform;
  readonly clock: ManualClock;
  readonly ctx: TestContext<SlackConfig>;
  readonly http: HttpReceiver | undefined;
  /** Begins to receive. @returns the end of it. */
  run(): { readonly ended: Promise<void>; stop(): void };
}

/** The platform of one entry over a scripted Slack, without the kit. */
export async function opened(t: Test, mode: 'socket' | 'http' = 'socket', more: object = {}): Promise<Opened> {
  const slack = new SlackServer();
  await slack.start();
  t.teardown(() => slack.stop());
  const clock = new ManualClock(Date.UTC(2026, 8, 21));
  const own = mode === 'socket' ? { appToken: APP_TOKEN } : { signingSecret: SIGNING_SECRET };
  const plugin = definePlugin({
    name: 'test',
    apiVersion: 1,
    summary: 'Holds the context.',
    configSchema,
    register: ({ state }) => ({ start: () => void state }),
  });
  const config = { botToken: BOT_TOKEN, apiUrl: slack.apiUrl, agent: 'helper', ...own, ...more };
  const ctx = testContext(plugin, { config, clock, entry: 'transports.slack' });
  const http = mode === 'http' ? new HttpReceiver(SIGNING_SECRET, ctx) : undefined;
  const platform = new SlackPlatform(ctx, http);
  const inbox = new TestInbox();
  const run = () => {
    const stopping = new AbortController();
    const ended = platform.run(inbox, stopping.signal);
    t.teardown(async () => {
      stopping.abort();
      await ended.catch(() => {});
      // A connection whose close Slack does not answer is given up.
      clock.advance(60_000);
    });
    return { ended, stop: () => stopping.abort() };
  };
  return { slack, inbox, platform, clock, ctx, http, run };
}
