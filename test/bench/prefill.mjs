// Fills a session file before its server starts.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Where a checkout has its test kit, and where earlier ones had it: for `--against`. */
const TEST_KITS = ['plugins/testing/dist/index.js', 'kernel/dist/testing/index.js'];
/** Commits that may wait, so that they share transactions. */
const AT_ONCE = 1_000;
const ANSWER = ' token'.repeat(100);

/**
 * Creates sessions of an agent with so many messages each, of two messages per turn.
 *
 * @param checkout the folder of a built checkout, whose store writes the file.
 */
export async function prefill(checkout, path, lengths, agent = 'recent') {
  const load = (file) => import(pathToFileURL(join(checkout, file)));
  const { SessionStores } = await load('kernel/dist/index.js');
  const { testContext } = await load(TEST_KITS.find((file) => existsSync(join(checkout, file))));
  const { default: sqlite } = await load('plugins/store-sqlite/dist/index.js');
  const clock = { now: Date.now, monotonic: () => performance.now(), after: () => ({ cancel() {}, refresh() {} }) };
  const context = testContext(sqlite, { config: { path, maxSessionsPerProject: 1e9, maxBytesPerProject: '1000gb' }, clock });
  await context.lifecycle?.start?.(new AbortController().signal);
  const store = context.contributed(SessionStores);
  let commits = [];
  for (const [key, messages] of Object.entries(lengths)) {
    const id = { project: 'default', agent, key };
    for (let turn = 0; turn < messages / 2; turn++) {
      const added = [
        { role: 'user', content: `turn ${turn}` },
        { role: 'assistant', content: ANSWER },
      ];
      commits.push(store.commit(id, { expected: turn, messages: added }));
    }
    if (commits.length < AT_ONCE) continue;
    await Promise.all(commits);
    commits = [];
  }
  await Promise.all(commits);
  await context.lifecycle?.stop?.(new AbortController().signal);
}
