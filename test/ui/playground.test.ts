import type { Browser } from 'playwright-core';
import t, { type Test } from 'tap';
import { access } from './cases/access.js';
import { accessibility } from './cases/accessibility.js';
import { chat } from './cases/chat.js';
import { code } from './cases/code.js';
import { layout } from './cases/layout.js';
import { safety } from './cases/safety.js';
import { sessions } from './cases/sessions.js';
import { launch, skip } from './support/browser.js';

/** A group of tests, each in a window of its own. */
export type Cases = (t: Test, browser: Browser) => Promise<unknown> | void;

// One file for all groups: one browser, and one line if there is none.
t.test('the playground in a real browser', { skip }, async (t) => {
  const browser = await launch();
  t.teardown(() => browser.close());
  for (const [name, cases] of Object.entries(Object.fromEntries(Object.entries({ chat, sessions, access, code, safety, accessibility, layout }).filter(([n]) => !process.env.ONLY || process.env.ONLY.includes(n))))) {
    await t.test(name, async (t) => {
      await cases(t, browser);
    });
  }
});
