import { randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { startPlayground } from '../support/server.js';

const PIXEL = Buffer.from('R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=', 'base64');

/** The same as a script that makes a file of it. */
const DOT = `new File([Uint8Array.fromBase64('${PIXEL.toString('base64')}')], 'dot.gif', { type: 'image/gif' })`;

/** A PNG of noise, which is hard to compress. */
function noise(side: number): Buffer {
  const rows = Buffer.concat(Array.from({ length: side }, () => Buffer.concat([Buffer.from([0]), randomBytes(side * 3)])));
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const sizes = Buffer.alloc(8);
    sizes.writeUInt32BE(data.length, 0);
    sizes.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([sizes.subarray(0, 4), body, sizes.subarray(4)]);
  };
  const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows, { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function file(name: string, mimeType: string, buffer: Buffer) {
  return { name, mimeType, buffer };
}

/** Hands a file to the page as a drop or a paste does. */
function give(page: Playground, kind: 'drop' | 'paste', text = '', what = DOT) {
  return page.page.evaluate(`(() => {
    const data = new DataTransfer();
    data.items.add(${what});
    if (${JSON.stringify(text)}) data.setData('text/plain', ${JSON.stringify(text)});
    const options = { bubbles: true, cancelable: true };
    const event = '${kind}' === 'drop'
      ? new DragEvent('drop', { ...options, dataTransfer: data })
      : new ClipboardEvent('paste', { ...options, clipboardData: data });
    document.querySelector('#message').dispatchEvent(event);
  })()`);
}

export async function images(t: Test, browser: Browser): Promise<void> {
  t.test('images come from files, a drop or a paste, reach the model, and are there after a reload', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const thumbnails = page.page.locator('.thumbnails img');
    for (const [name, add] of Object.entries({
      file: () => page.page.locator('#image-files').setInputFiles([file('dot.gif', 'image/gif', PIXEL)]),
      drop: () => give(page, 'drop'),
      paste: () => give(page, 'paste'),
    })) {
      app.models.enqueue({ text: `I see it: ${name}` });
      await add();
      await thumbnails.waitFor();
      await page.ask(`What is this? ${name}`);
      t.equal(await thumbnails.count(), 0, 'the next message starts without it');
      const [request] = app.models.requests.slice(-1);
      t.match(request?.body.messages.at(-1)?.content, [
        { type: 'text', text: `What is this? ${name}` },
        { type: 'image_url', image_url: { url: `data:image/gif;base64,${PIXEL.toString('base64')}` } },
      ]);
    }
    t.equal(await page.page.locator('.asked img').count(), 3);
    await page.page.reload();
    await page.turns.nth(2).waitFor();
    t.equal(await page.page.locator('.asked img').count(), 3, 'from the stored items');
    t.match(await page.turns.first().locator('.asked').innerText(), 'What is this? file');
    t.same(page.foreignRequests, []);
    t.same(page.problems, []);
  });

  t.test('an image alone is a message, a second one is removed, and a large photo is made smaller', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: 'Noise.' });
    await page.page
      .locator('#image-files')
      .setInputFiles([file('photo.png', 'image/png', noise(900)), file('dot.gif', 'image/gif', PIXEL)]);
    await page.page.locator('.thumbnails img').nth(1).waitFor();
    await page.button('Remove image 2').click();
    await page.button('Send').click();
    await page.ended(0);
    const [request] = app.models.requests.slice(-1);
    const [url = ''] = /data:image[^"]+/.exec(JSON.stringify(request?.body.messages.at(-1))) ?? [];
    t.match(url, /^data:image\/jpeg;base64,/);
    t.ok(url.length <= 500_000, `${url.length} characters`);
    t.same(page.problems, []);
  });

  t.test('what cannot be sent is refused in words, and the draft stays', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.message.fill('My draft');
    const files = page.page.locator('#image-files');
    const notice = page.page.locator('.notice');
    for (const [one, said] of [
      [file('setup.exe', 'application/x-msdownload', PIXEL), /“setup\.exe” cannot be sent: only PNG, JPEG, GIF and WebP/],
      [
        file('a.svg', 'image/svg+xml', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="attack()"/>')),
        /“a\.svg” cannot be sent/,
      ],
      [file('order.pdf', 'application/pdf', Buffer.from('%PDF-1.7')), /“order\.pdf” cannot be sent/],
      [file('<img src=x onerror=attack()>.png', 'image/png', Buffer.from('no image')), /<img src=x.*cannot be read as an image/],
    ] as const) {
      await files.setInputFiles([one]);
      await eventually(async () => said.test((await notice.allInnerTexts()).join()));
    }
    const huge = `new File([new Uint8Array(50_000_000)], 'huge.png', { type: 'image/png' })`;
    await give(page, 'drop', '', huge);
    await page.page.getByText('“huge.png” is too large: 50 MB. An image can have 20 MB.').waitFor();
    t.equal(await page.page.locator('.thumbnails').count(), 0);
    t.equal(await page.message.inputValue(), 'My draft');
    t.equal(await page.page.locator('.notice img').count(), 0);
    const other = (name: string) => file(name, 'application/pdf', PIXEL);
    await files.setInputFiles(
      ['1.pdf', '2.pdf', '3.pdf', '4.pdf', '5.pdf'].map(other).toSpliced(4, 0, file('dot.gif', 'image/gif', PIXEL)),
    );
    await notice.getByText(/“1\.pdf”.*“2\.pdf”.*“3\.pdf”.* And 2 more\./).waitFor();
    t.equal(await page.page.locator('.thumbnails img').count(), 1, 'the good one of several files is taken');
    t.same(page.problems, []);
  });

  t.test('text that comes with its picture is pasted as text', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await give(page, 'paste', 'cells of a sheet');
    await page.rendered();
    t.equal(await page.page.locator('.thumbnails').count(), 0);
    t.same(page.problems, []);
  });

  t.test('S-27 a remote image of a stored message is a link, and no other address becomes one', async (t) => {
    const app = await startPlayground(t);
    app.models.enqueue({ text: 'Seen.' });
    const image = (url: string) => ({ type: 'image_url', image_url: { url } });
    const content = [{ type: 'text', text: 'Look' }, image('https://images.example/spy.png')];
    await app.request(
      'POST',
      '/v1/chat/completions',
      {},
      { model: 'assistant', session_id: 'remote', messages: [{ role: 'user', content }] },
    );
    const page = await Playground.open(t, browser, app);
    await page.page.locator('.session-open').first().click();
    await page.turns.first().waitFor();
    t.equal(await page.page.locator('.asked a').getAttribute('href'), 'https://images.example/spy.png');
    t.equal(await page.page.locator('.asked img').count(), 0);
    t.same(page.foreignRequests, []);
    t.same(page.problems, []);
  });

  t.test('a model that takes text only refuses an image in words, and nothing is lost', async (t) => {
    const app = await startPlayground(t, { model: 'input: [text]' });
    const page = await Playground.open(t, browser, app);
    await give(page, 'paste');
    await page.page.locator('.thumbnails img').waitFor();
    const turn = await page.ask('What is this?');
    t.match(await turn.locator('.failure').innerText(), /image/);
    t.equal(await turn.locator('.asked img').count(), 1);
    t.match(await turn.locator('.asked').innerText(), 'What is this?');
    t.same(page.problems, []);
  });

  t.test('an image for an agent that takes text only is refused before it is sent', async (t) => {
    const surfaces = '  websocket: {}\n  conversations: {}\n  agents: {}\n  playground: {}\n';
    const app = await startPlayground(t, { surfaces, model: 'input: [text]' });
    const page = await Playground.open(t, browser, app);
    await page.message.fill('What is this?');
    await give(page, 'paste');
    await page.page.getByRole('alert').getByText('assistant cannot read images: its model takes text only.').waitFor();
    t.equal(await page.page.locator('.thumbnails').count(), 0);
    t.equal(await page.message.inputValue(), 'What is this?');
    t.same(page.problems, []);
  });

  t.test('the images of a draft are there after a reload, and a tab without room for them says so', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const thumbnails = page.page.locator('.thumbnails img');
    await give(page, 'paste');
    await page.message.fill('What is this?');
    await thumbnails.waitFor();
    await page.page.reload();
    await page.settled();
    await thumbnails.waitFor();
    t.equal(await page.message.inputValue(), 'What is this?');
    await page.button('Remove image 1').click();
    await page.page.reload();
    await page.settled();
    await eventually(async () => (await page.message.inputValue()) === 'What is this?');
    t.equal(await thumbnails.count(), 0);

    await page.page.evaluate(`for (let size = 5_000_000; size > 1000; size /= 2) {
      try { for (;;) sessionStorage.setItem('other' + Math.random(), 'x'.repeat(size)); } catch {}
    }`);
    await page.page.locator('#image-files').setInputFiles([file('photo.png', 'image/png', noise(300))]);
    await thumbnails.waitFor();
    await page.page.getByText('A reload of the page will lose the images of this message').waitFor();
    app.models.enqueue({ text: 'Noise.' });
    await page.ask('What is this?');
    t.match(JSON.stringify(app.asked.messages), /image_url/, 'it is sent all the same');
    t.same(page.problems, []);
  });
}
