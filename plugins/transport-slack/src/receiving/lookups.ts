import type { Account, SlackTo } from '../base/slack.js';
import type { WebClient } from '../web-api/web-client.js';
import { plainText } from './plain-text.js';

/** People whose workspace is remembered. */
const MAX_PEOPLE = 10_000;

/** What an event does not say, and Slack is asked for. */
export class Lookups {
  readonly #client: WebClient;
  readonly #account: Account;
  readonly #teams = new Map<string, string>();

  constructor(client: WebClient, account: Account) {
    this.#client = client;
    this.#account = account;
  }

  /**
   * The workspace of a person. @throws if Slack does not say it: that makes no stranger, and the
   * event comes again.
   */
  async teamOf(user: string): Promise<string> {
    const known = this.#teams.get(user);
    if (known !== undefined) return known;
    const { user: person } = await this.#client.users.info({ user });
    if (person?.team_id === undefined) throw new Error(`Slack does not say the workspace of ${user}`);
    if (this.#teams.size >= MAX_PEOPLE) this.#teams.clear();
    this.#teams.set(user, person.team_id);
    return person.team_id;
  }

  /**
   * The text of the message that began a thread. @returns undefined if Slack does not show it in
   * time: the message that replies to it goes to the agent alone.
   */
  async beginningOf({ channel, thread }: SlackTo): Promise<string | undefined> {
    try {
      const { messages = [] } = await this.#client.conversations.replies({ channel, ts: String(thread), limit: 1 });
      return plainText(messages[0]?.text ?? '', this.#account) || undefined;
    } catch {
      return undefined;
    }
  }
}
