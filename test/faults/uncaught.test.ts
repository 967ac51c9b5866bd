import { eventually } from '@plugboard/testing';
/** Uncaught errors. Each server is a separate process. */
import t, { type Test } from 'tap';
import { ServerProcess } from '../attacks/support/server-process.js';
import { ASSISTANT, saying, TRANSPORTS } from '../support/test-server.js';

/** A plugin whose route breaks things outside of any request. */
const BOMB = `
  import { definePlugin } from '@plugboard/kernel';
  import { HttpRoutes } from '@plugboard/transport-http';
  const ways = {
    exception: () => setTimeout(() => { throw new Error('out of the blue'); }),
    rejection: () => void Promise.reject(new Error('out of the blue')),
    cause: () => setTimeout(() => { const cause = new Error('below'); const error = new Error('out of the blue', { cause }); error.stack = ''; throw error; }),
    repeated: () => setInterval(() => { throw new Error('out of the blue'); }, 1),
    getter: () => setTimeout(() => { throw Object.defineProperty(new Error('out of the blue'), 'x', { enumerable: true, get() { throw 1; } }); }),
    proxy: () => { const get = () => { throw 1; }; setTimeout(() => { throw new Proxy({}, { get, getPrototypeOf: get }); }); },
    huge: () => setTimeout(() => { throw new Error('x'.repeat(50_000_000)); }),
    nothing: () => setTimeout(() => { throw undefined; }),
  };
  export default definePlugin({
    name: 'bomb', apiVersion: 1, summary: 'Breaks', configSchema: { type: 'object', properties: { stops: { type: 'string', default: 'at once' } } },
    register(ctx) {
      ctx.contribute(HttpRoutes, {
        method: 'POST', path: '/break/:way', access: 'public', body: 'none', startsWork: false,
        handle: ({ params }) => { ways[params.way](); return { status: 202 }; },
      });
      const delay = { 'at once': 0, late: 200, never: 2 ** 30 }[ctx.config.stops];
      return { stop: () => new Promise((resolve) => setTimeout(resolve, delay)) };
    },
  });
`;

async function started(t: Test, options = ''): Promise<ServerProcess> {
  const yaml = `${TRANSPORTS}${ASSISTANT}plugins: { bomb: { use: ./bomb.mjs${options} } }\n`;
  return ServerProcess.start(t, { yaml, files: { 'bomb.mjs': BOMB } });
}

/** Breaks the server. @returns the fatal lines of its log. */
async function broken(server: ServerProcess, way: string): Promise<readonly Record<string, unknown>[]> {
  await server.request(`/break/${way}`, { method: 'POST' });
  await server.closed();
  return server.log.filter(({ level }) => level === 'fatal');
}

for (const way of ['exception', 'rejection', 'cause', 'repeated']) {
  t.test(`R-065 an uncaught error (${way}) is logged once, with its entry, and ends the process with 1`, async (t) => {
    const server = await started(t, way === 'repeated' ? ', stops: late' : '');
    const lines = await broken(server, way);
    t.equal(await server.exit(), 1);
    t.equal(lines.length, 1);
    t.match(lines, [
      { msg: 'uncaught error: stopping', entry: 'plugins.bomb', plugin: 'bomb', err: { message: /^out of the blue/ } },
    ]);
    const further = server.log.filter(({ msg }) => msg === 'there were further uncaught errors');
    t.equal(further.length, way === 'repeated' ? 1 : 0);
  });
}

for (const [way, what] of [
  ['getter', 'has a property that throws'],
  ['proxy', 'cannot be read at all'],
  ['huge', 'has a message of 50 MB'],
] as const) {
  t.test(`R-065 an uncaught error that ${what} is logged once and ends the process with 1`, async (t) => {
    const server = await started(t);
    const lines = await broken(server, way);
    t.equal(await server.exit(), 1);
    t.match(lines, [{ msg: 'uncaught error: stopping', err: { message: String } }]);
    t.equal(lines.length, 1);
    t.ok(server.stderr.length < 1_000_000);
  });
}

t.test('R-065 an error without a stack names no entry and also ends the process', async (t) => {
  const server = await started(t);
  const lines = await broken(server, 'nothing');
  t.equal(await server.exit(), 1);
  t.match(lines, [{ msg: 'uncaught error: stopping' }]);
  t.notOk(lines[0]?.entry);
});

// These wait for limits of time.
t.jobs = 3;

t.test(
  'R-065 after an uncaught error the server is not ready, and running turns get five seconds',
  { buffered: true },
  async (t) => {
    const server = await started(t);
    const done = Promise.withResolvers<void>();
    server.models.respond(async ({ body }) => {
      await (body.messages.at(-1)?.content === 'short' ? done.promise : new Promise(() => {}));
      return { text: 'Just in time' };
    });
    const chat = (content: string) =>
      server.request('/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(saying(content)),
      });
    const [short, long] = [chat('short'), chat('long')];
    await eventually(() => server.models.requests.length === 2);
    const start = performance.now();
    await server.request('/break/exception', { method: 'POST' });
    await eventually(async () => {
      const { text } = await server.request('/health');
      return JSON.parse(text).ready === false;
    });
    t.equal((await server.request('/readyz')).status, 503);
    t.equal((await chat('new')).status, 503, 'and takes no new turns');
    done.resolve();
    t.equal((await short).status, 200, 'a turn that ends in time is answered');
    t.equal((await long).status, 502, 'the other one gets an error');
    const waited = performance.now() - start;
    t.ok(waited > 4_000, `${Math.round(waited)} ms`); // the answer would never come
    t.equal(await server.exit(), 1);
  },
);

t.test('R-065 an entry that does not stop cannot keep the process alive', { buffered: true }, async (t) => {
  const server = await started(t, ', stops: never');
  await broken(server, 'exception');
  t.equal(await server.exit(), 1);
});

t.test('R-065 an uncaught error while the server stops makes the exit code 1', { buffered: true }, async (t) => {
  const server = await started(t);
  server.models.respond(async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return { text: 'Done' };
  });
  const turn = server.request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(saying('Hi')),
  });
  await eventually(() => server.models.requests.length === 1);
  server.kill('SIGTERM');
  await server.logs('SIGTERM: stopping');
  await server.request('/break/exception', { method: 'POST' });
  t.equal((await turn).status, 200);
  t.equal(await server.exit(), 1);
});
