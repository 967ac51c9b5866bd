/** The lines of a WebSocket handshake. */
export function handshake(path: string, ...headers: readonly string[]): readonly string[] {
  return [
    `GET ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ...headers,
    '',
    '',
  ];
}

/** A masked text frame; the mask is zero. */
export function frame(payload: Buffer | string, { opcode = 1, fin = true } = {}): Buffer {
  const body = Buffer.from(payload);
  const length =
    body.length < 126 ? Buffer.from([0x80 | body.length]) : Buffer.from([0x80 | 126, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([Buffer.from([(fin ? 0x80 : 0) | opcode]), length, Buffer.alloc(4), body]);
}
