import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

const IMAGES = join(import.meta.dirname, '../../../../../docs/images');

/** Largest size of the picture, in bytes. */
const LIMIT = 200_000;

const ANSWER = `Order **1042** left our warehouse this morning and should arrive **on Thursday**.

| Step | When |
| --- | --- |
| Packed | Monday, 16:20 |
| Handed to the carrier | Tuesday, 08:05 |
| Expected | Thursday, before noon |

You can change the address until it reaches the depot:

\`\`\`sh
curl -X POST https://shop.example/orders/1042/address -d '{"city": "Lisbon"}'
\`\`\``;

const RESULTS: Readonly<Record<string, string>> = {
  'order 1042': '{"id":1042,"status":"shipped","parcel":"PT-88321"}',
  'parcel PT-88321': '{"at":"Sorting centre","expected":"Thursday"}',
};

export async function screenshot(t: Test, browser: Browser): Promise<void> {
  t.test('the picture of the documentation is small; UPDATE_SCREENSHOT=1 writes it', async (t) => {
    const lookup = async (topic: string) => {
      await setTimeout(topic.length * 15); // as if it took its time: the picture shows durations
      return RESULTS[topic] ?? '';
    };
    const app = await startPlayground(t, { lookup });
    for (const title of ['Refund for a broken lamp', 'Opening hours in Porto', 'Invoice of September']) {
      await app.request('POST', '/v1/conversations', {}, { agent: 'assistant', metadata: { title } });
    }
    const page = await Playground.open(t, browser, app, { width: 1240, height: 800 });
    app.models.enqueue({ toolCalls: [lookUp('order 1042')] }, { toolCalls: [lookUp('parcel PT-88321')] }, { text: [...ANSWER] });
    const turn = await page.ask('Where is my order 1042, and can I still change the address?');
    await page.message.blur();
    const picture = await page.page.screenshot();
    t.match(await page.answer(turn), 'Thursday');
    t.ok(picture.length < LIMIT, `${picture.length} bytes`);
    if (process.env.UPDATE_SCREENSHOT === '1') {
      await mkdir(IMAGES, { recursive: true });
      await writeFile(join(IMAGES, 'playground.png'), picture);
    }
    t.same(page.problems, []);
  });
}
