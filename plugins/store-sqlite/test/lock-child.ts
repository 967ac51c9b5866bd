/** Holds the store in a folder open until it is killed. Says `open`, or why it cannot. */
import { openStore } from './opened.js';

const [, , folder = ''] = process.argv;
try {
  openStore(folder);
  process.send?.('open');
  setInterval(() => {}, 60_000);
} catch (error) {
  process.send?.(error instanceof Error ? error.message : String(error));
  process.disconnect?.();
}
