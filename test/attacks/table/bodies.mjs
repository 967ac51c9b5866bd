import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { ATTACKER, never } from './values.mjs';

/** Bodies, and connections that send them. */
export const BODIES = {
  'thirty bodies of 195,000 empty objects': (s) => async () => {
    s.otherwise = { text: ['A', never] };
    const body = `{"model":"assistant","messages":[{"role":"user","content":"Hi"}],"x":[${'{},'.repeat(194_000)}{}]}`;
    await Promise.all(Array.from({ length: 30 }, () => s.chat(body)));
  },
  'ephemeral tokens with 190,000 agents': (s) => async () => {
    const body = JSON.stringify({ agents: Array.from({ length: 190_000 }, (_, n) => `agent-with-a-long-name-${n}`) });
    for (let n = 0; n < 40; n++) await s.post('/v1/ephemeral_tokens', body);
  },
  'chunks of one byte, without a token': (s) => async () => {
    const pieces = '1\r\n \r\n'.repeat(10_000);
    const one = async () => {
      const socket = connect(s.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.resume();
      await once(socket, 'connect');
      socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
      while (!socket.destroyed && !s.isOver) {
        s.bytes += pieces.length;
        if (!socket.write(pieces))
          await Promise.race([once(socket, 'drain'), once(socket, 'close'), wait(1_000)]).catch(() => {});
      }
    };
    while (!s.isOver) await Promise.all([one(), one(), one(), one()]);
  },
  'S-72: 3,584 half bodies of one token': (s) => async () => {
    const lines = [
      'POST /v1/chat/completions HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/json',
      `Authorization: Bearer ${ATTACKER}`,
      'Content-Length: 9999',
    ];
    const head = `${lines.join('\r\n')}\r\n\r\n{`;
    for (let n = 0; n < 3_584; n++) {
      s.bytes += head.length;
      const socket = connect(s.port, '127.0.0.1', () => socket.write(head)).on('error', () => {});
      socket.once('data', (data) => s.count(String(data).slice(9, 12)));
      if (n % 64 === 0) await wait(5);
    }
    await wait(4_000);
  },
};
