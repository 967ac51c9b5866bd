import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import type { Test } from 'tap';
import type { TestServer } from '../../../../../test/support/test-server.js';

interface OpenOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: 'light' | 'dark';
  /** Whether a finger points, and not a mouse. */
  readonly touch?: boolean;
  /** Behind `/playground`, for example a hash. */
  readonly address?: string;
}

/** The playground in a browser window of its own. */
export class Playground {
  /** Everything that was written to the console, and every uncaught error. */
  readonly problems: string[] = [];
  /** URLs of all requests that were not for the server under test. */
  readonly foreignRequests: string[] = [];
  readonly message: Locator;
  readonly turns: Locator;
  readonly cards: Locator;
  readonly agent: Locator;

  private constructor(
    readonly page: Page,
    readonly context: BrowserContext,
    url: string,
  ) {
    this.message = page.getByLabel('Message', { exact: true });
    this.turns = page.locator('.turn');
    this.cards = page.locator('.tool');
    this.agent = page.getByLabel('Agent', { exact: true });
    page.on('console', (entry) => this.problems.push(`${entry.type()}: ${entry.text()}`));
    page.on('pageerror', (error) => this.problems.push(`uncaught: ${error.message}`));
    page.on('request', (request) => {
      if (new URL(request.url()).host !== new URL(url).host) this.foreignRequests.push(request.url());
    });
  }

  /** Opens the page, and waits until it has read what it shows first. */
  static async open(t: Test, browser: Browser, server: Pick<TestServer, 'url'>, options: OpenOptions = {}): Promise<Playground> {
    const { width = 1280, height = 800, scheme = 'light', touch = false, address = '' } = options;
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      hasTouch: touch,
      isMobile: touch,
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    t.teardown(() => context.close());
    return Playground.openTab(context, server.url, address);
  }

  /** Opens the page in another tab of a window. */
  static async openTab(context: BrowserContext, url: string, address = ''): Promise<Playground> {
    const playground = new Playground(await context.newPage(), context, url);
    await playground.page.goto(`${url}/playground${address}`);
    await playground.settled();
    return playground;
  }

  /** Waits until the page has read what it shows first. */
  async settled(): Promise<void> {
    await this.page.locator('playground-app[aria-busy=false]').waitFor();
  }

  /**
   * Enters a token that the server accepts. Nothing else takes a key before the dialog is closed.
   */
  async enterToken(token: string): Promise<void> {
    const field = this.page.getByLabel('Token', { exact: true });
    await field.fill(token);
    await field.press('Enter');
    await this.page.getByRole('dialog').waitFor({ state: 'hidden' });
  }

  /** Sends a message as a person would. */
  async say(text: string): Promise<void> {
    await this.message.fill(text);
    await this.message.press('Enter');
  }

  /**
   * Sends a message to a model that waits in the middle of `Slowly but surely.`
   * @returns what lets it go on.
   */
  async askSlowly({ models }: Pick<TestServer, 'models'>, text = 'How do you work?'): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    models.enqueue({ text: ['Slowly ', promise, 'but surely.'] });
    await this.say(text);
    await this.page.getByText('Slowly').waitFor();
    return resolve;
  }

  /** Sends a message and waits for the end of its turn. */
  async ask(text: string): Promise<Locator> {
    await this.rendered(); // a new chat may just have begun
    const count = await this.turns.count();
    await this.say(text);
    return this.ended(count);
  }

  /** A turn, when it has ended. */
  async ended(index: number): Promise<Locator> {
    const turn = this.turns.nth(index);
    await turn.locator('.turn-foot').waitFor();
    await this.rendered(); // the last words of an answer are rendered one frame after its end
    return turn;
  }

  /** Waits until what has changed is shown. */
  async rendered(): Promise<void> {
    await this.page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
  }

  /** The text of a turn's answer. */
  async answer(turn: Locator): Promise<string> {
    return (await turn.locator('markdown-text').allInnerTexts()).join('\n');
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' });
  }

  /** What was copied last. */
  clipboard(): Promise<string> {
    return this.page.evaluate('navigator.clipboard.readText()');
  }

  /** The titles of the listed sessions. */
  sessionTitles(): Promise<string[]> {
    return this.page.locator('.session:not(.tab-chat) .session-title').allInnerTexts();
  }

  /** Opens the menu of a session and clicks an action. */
  async sessionAction(title: string, action: string): Promise<void> {
    await this.button(`Actions for ${title}`).click();
    await this.page.getByRole('menuitem', { name: action }).click();
  }
}
