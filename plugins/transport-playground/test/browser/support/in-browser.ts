import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { launch, skip } from './browser.js';

/** Milliseconds that a file may take, as `test/tools/group.mjs` says. */
const FILE_TIMEOUT = 300_000;

type Cases = (t: Test, browser: Browser) => Promise<void>;

/** Runs groups of cases in one browser: one line says so if there is none. */
export function inBrowser(t: Test, groups: Readonly<Record<string, Cases>>): void {
  t.setTimeout(FILE_TIMEOUT);
  t.test('the playground in a real browser', { skip, timeout: FILE_TIMEOUT }, async (t) => {
    const browser = await launch();
    t.teardown(() => browser.close());
    for (const [name, cases] of Object.entries(groups)) await t.test(name, { timeout: FILE_TIMEOUT }, (t) => cases(t, browser));
  });
}
