import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** The browser that the tests use: Debian's package, or what the variable names. */
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Why these tests are skipped; false if there is a browser. */
export const skip = existsSync(CHROMIUM) ? false : `no browser at ${CHROMIUM}: install chromium, or set CHROMIUM to its path`;

const ARGUMENTS = [
  '--no-sandbox', // in a container
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts the browser with an empty profile. The caller closes it. */
export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
}
