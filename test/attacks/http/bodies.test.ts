/**
 * Bodies that cost the server more than their sender, while another caller works. Each server is a
 * process of its own.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Account } from '@plugboard/kernel/contracts';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { LOOP_DELAY, LOOP_DELAY_FILES, longestDelay } from '../support/loop-delay.js';
import { Neighbour } from '../support/neighbour.js';
import { ServerProcess } from '../support/server-process.js';

const [ATTACKER, INNOCENT] = ['token-of-the-attacker', 'token-of-the-neighbour'];
const TOKENS = `auth: { bearer: { tokens: [
  { name: attacker, project: default, token: ${ATTACKER} }, { name: neighbour, project: default, token: ${INNOCENT} } ] } }\n`;

const MIB = 1024 * 1024;
/**
 * Milliseconds that another caller may have to wait at worst. Generous: other tests run at the same
 * time.
 */
const WAIT_LIMIT = 30_000;
/**
 * Milliseconds for which one body may hold the event loop. It is a tenth of that on a quiet
 * machine; without limits it was 8,600.
 */
const HOLD_LIMIT = 1_000;

const HEADERS = { 'content-type': 'application/json', authorization: `Bearer ${ATTACKER}` };

t.test('S-35 bodies of millions of values are refused without parsing them', async (t) => {
  const server = await ServerProcess.start(t, {
    yaml: TRANSPORTS + TOKENS + ASSISTANT + LOOP_DELAY,
    files: LOOP_DELAY_FILES,
  });
  const send = (fields: string) =>
    server.request('/v1/chat/completions', {
      method: 'POST',
      headers: HEADERS,
      body: `{"model":"assistant","messages":[{"role":"user","content":"Hi"}]${fields}}`,
    });
  await send('');
  const before = server.peakMemory();
  const neighbour = new Neighbour(server, { token: INNOCENT });
  const attacks = {
    'six million objects': [`,"x":[${'{},'.repeat(6_000_000)}{}]`, 'too_many_values'],
    'a key __proto__ after them': [`,"x":[${'{},'.repeat(6_000_000)}{}],"__proto__":{}`, 'too_many_values'],
    '700,000 parts of a message': [
      `,"messages":[{"role":"user","content":[${Array(700_000).fill('{"type":"text"}').join()}]}]`,
      'too_many_values',
    ],
    '1.3 million keys of logit_bias': [
      `,"logit_bias":{${Array.from({ length: 1_300_000 }, (_, at) => `"${at}":0`).join()}}`,
      'too_many_keys',
    ],
    '129 unknown fields': [Array.from({ length: 129 }, (_, at) => `,"field${at}":1`).join(''), 'too_many_fields'],
  } as const;
  const delays: Record<string, number> = {};
  const sendAndMeasure = async (what: string, fields: string) => {
    await longestDelay(server);
    const reply = await send(fields);
    delays[what] = Math.round(await longestDelay(server));
    return reply;
  };
  for (const [what, [fields, code]] of Object.entries(attacks)) {
    const { status, text } = await sendAndMeasure(what, fields);
    t.equal(status, 400, what);
    t.match(JSON.parse(text), { error: { code } });
  }
  const accepted = {
    'nearly as many values as allowed': `,"x":[${'{},'.repeat(199_900)}{}]`,
    'a text that nearly fills the body': `,"x":"${'\\n'.repeat(9 * MIB)}"`,
    'nearly as many keys as allowed': `,"x":{${Array.from({ length: 9_999 }, (_, at) => `"${at}":0`).join()}}`,
  };
  for (const [what, fields] of Object.entries(accepted)) t.equal((await sendAndMeasure(what, fields)).status, 200, what);
  t.comment(`the event loop was held for (ms): ${JSON.stringify(delays)}`);
  t.same(
    Object.entries(delays).filter(([, delay]) => delay > HOLD_LIMIT),
    [],
    'no body holds the event loop',
  );
  const measured = await neighbour.stop();
  t.comment(`neighbour: ${JSON.stringify(measured)}, peak ${Math.round(server.peakMemory())} MiB, ${Math.round(before)} before`);
  t.same(measured.failures, {});
  t.ok(measured.p99 < WAIT_LIMIT);
  t.ok(server.peakMemory() - before < 250, 'memory stays near the size of the bodies');

  const messages = Array.from({ length: 2_048 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: Array(8).fill({ type: 'text', text: 'part' }),
  }));
  const { status } = await server.request('/v1/chat/completions', {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({ model: 'assistant', messages: [...messages, { role: 'user', content: 'Hi' }].slice(1) }),
  });
  t.equal(status, 200, '2,048 messages of eight parts are served');
});

t.test('S-36 unfinished bodies of one token use at most its share of the memory', async (t) => {
  const server = await ServerProcess.start(t, { yaml: TRANSPORTS + TOKENS + ASSISTANT, heap: 512 });
  const chat = (content: string, token: string) =>
    server.request('/v1/chat/completions', {
      method: 'POST',
      headers: { ...HEADERS, authorization: `Bearer ${token}` },
      body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content }] }),
    });
  t.equal((await chat('x'.repeat(8 * MIB), ATTACKER)).status, 200, 'a large body alone is served');

  const neighbour = new Neighbour(server, { token: INNOCENT });
  const piece = Buffer.alloc(MIB, 0x20);
  const open = new Set<Socket>();
  for (let n = 0; n < 60; n++) {
    const socket = connect(server.port, '127.0.0.1');
    open.add(socket);
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', () => open.delete(socket)).on('close', () => open.delete(socket)); // refused
    await once(socket, 'connect');
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      'Host: localhost',
      ...Object.entries(HEADERS).map((pair) => pair.join(': ')),
    ];
    socket.write(`${head.join('\r\n')}\r\nContent-Length: ${20 * MIB}\r\n\r\n`);
    for (let sent = 0; sent < 19; sent++) socket.write(piece);
  }
  // What still arrives may have to go for what comes next, so wait: what has arrived stays. The
  // memory that is left is less than the last one that had to go would have taken.
  await eventually(async () => {
    const { used = 0 } = (await server.status()).limits.find(({ name }) => name === 'memory of callers') ?? {};
    return used >= Account.costOf(open.size * 19 * MIB);
  });
  const refused = await chat('x'.repeat(20 * MIB - 1024), ATTACKER);
  t.equal(refused.status, 503);
  t.ok(Number(refused.headers.get('retry-after')) > 0);
  t.match(JSON.parse(refused.text), { error: { code: 'overloaded', message: /`limits\.memory`/ } });
  t.equal((await chat('small', ATTACKER)).status, 200, 'small requests of the same token pass');
  t.equal((await chat('x'.repeat(MIB), INNOCENT)).status, 200, 'larger requests of another token pass');
  await server.logs('limit reached: memory of callers');

  const measured = await neighbour.stop();
  t.comment(`neighbour: ${JSON.stringify(measured)}, peak ${Math.round(server.peakMemory())} MiB, held ${open.size}`);
  t.same(measured.failures, {});
  t.ok(server.running);
  t.ok(server.peakMemory() < 900, 'the 1.1 GiB that were sent did not stay in memory');

  for (const socket of open) socket.destroy();
  t.ok(await eventually(async () => (await chat('x'.repeat(8 * MIB), ATTACKER)).status === 200), 'the memory is free again');
});

t.test('S-72 small unfinished bodies of one token use at most its share of the memory', async (t) => {
  const server = await ServerProcess.start(t, { yaml: `${TRANSPORTS + TOKENS + ASSISTANT}limits: { memory: 16mb }\n` });
  const head = (token: string) =>
    'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
    `Authorization: Bearer ${token}\r\nContent-Length: 9999\r\n\r\n`;
  let refused = 0;
  let waiting = 0;
  for (let n = 0; n < 300; n++) {
    const socket = connect(server.port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (data) => {
      if (String(data).startsWith('HTTP/1.1 503')) refused++;
    });
    await once(socket, 'connect');
    socket.write(`${head(ATTACKER)}{`, () => waiting++);
  }
  await eventually(() => waiting === 300 && refused > 0);
  const { status } = await server.request('/v1/chat/completions', {
    method: 'POST',
    headers: { ...HEADERS, authorization: `Bearer ${INNOCENT}` },
    body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'x'.repeat(100_000) }] }),
  });
  t.equal(status, 200);
  const memory = (await server.status()).limits.find(({ name }) => name === 'memory of callers');
  t.comment(`${refused} of 300 were refused, ${memory?.used} of ${memory?.limit} bytes are in use`);
  t.ok(memory && memory.used <= memory.limit / 2);
});

t.test('S-36 a body of one-byte chunks is refused before its pieces fill the memory', async (t) => {
  const server = await ServerProcess.start(t, { yaml: TRANSPORTS + TOKENS + ASSISTANT, heap: 512 });
  const neighbour = new Neighbour(server, { token: INNOCENT });
  await eventually(() => neighbour.turns > 20);
  const before = server.memory();
  let received = '';
  const socket = connect(server.port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  socket.on('data', (data) => {
    received += data;
  });
  await once(socket, 'connect');
  const headers = Object.entries({ ...HEADERS, 'transfer-encoding': 'chunked' }).map((pair) => pair.join(': '));
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n${headers.join('\r\n')}\r\n\r\n`);
  const piece = '1\r\n \r\n'.repeat(10_000);
  for (let sent = 0; sent < 200 && received === '' && !socket.destroyed; sent++) {
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {}); // refused
  }
  await eventually(() => received.includes('`limits.memory`'));
  t.match(received, /^HTTP\/1\.1 503 /);
  const growth = server.peakMemory() - before;
  t.comment(`grew by ${Math.round(growth)} MiB at most`);
  t.ok(growth < 250, 'two million of them took 700 MiB');
  t.same((await neighbour.stop()).failures, {});
});

t.test('S-59 the rest of a refused body is read up to a limit', async (t) => {
  const server = await ServerProcess.start(t, { yaml: TRANSPORTS + TOKENS + ASSISTANT });
  const refused = async (fields: string, send: (socket: Socket) => Promise<void>): Promise<string> => {
    const socket = connect(server.port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (data) => {
      received += data;
    });
    await once(socket, 'connect');
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n\r\n`);
    await send(socket);
    return received;
  };
  const before = server.processorTime();
  const pieces = '1\r\n \r\n'.repeat(20_000);
  const flood = async (socket: Socket) => {
    for (let sent = 0; sent < 100 && !socket.destroyed; sent++) {
      if (!socket.write(pieces)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
    }
  };
  const replies = await Promise.all(Array.from({ length: 4 }, () => refused('Transfer-Encoding: chunked', flood)));
  const spent = server.processorTime() - before;
  t.comment(`eight million chunks of one byte: ${spent} ms of a processor`);
  t.ok(spent < 1_000, 'chunks of one byte are not all read');
  for (const reply of replies) t.match(reply, /^HTTP\/1\.1 401 /);

  const large = await refused(`Content-Length: ${20 * MIB}`, async (socket) => {
    socket.write(Buffer.alloc(20 * MIB, 0x20));
    await once(socket, 'data');
  });
  t.match(large, /^HTTP\/1\.1 401 /, 'the sender of a large body receives its reply');
});
