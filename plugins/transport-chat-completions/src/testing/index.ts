import assert from 'node:assert/strict';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { Contract, type DeclareTest } from '@plugboard/testing';
import type { StreamEncoder } from '../answer/stream-encoder.js';

export interface StreamEncoderContractOptions {
  readonly encoder: StreamEncoder;
}

/** Declares the tests of the framing of a streamed answer (`StreamEncoder`). */
export function streamEncoderContract(test: DeclareTest, { encoder }: StreamEncoderContractOptions): void {
  const contract = new Contract('A stream encoder', test);
  contract.add('has valid headers with a content type', 'StreamEncoder.headers', async () => {
    for (const [name, value] of Object.entries(encoder.headers)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    const names = Object.keys(encoder.headers).map((name) => name.toLowerCase());
    assert.ok(names.includes('content-type'), `its headers are ${names.join(', ')}`);
  });
  contract.add('separates frames', 'StreamEncoder.before', async () => {
    assert.notEqual(`${encoder.before}${encoder.after}`, '', '`before` and `after` are empty, so frames run together');
  });
  contract.add('has a last frame unlike any other', 'StreamEncoder.done', async () => {
    assert.notEqual(encoder.done, '', '`done` is empty');
    assert.notEqual(encoder.done, `${encoder.before}{}${encoder.after}`, '`done` looks like an event');
  });
  contract.add('makes a comment a complete frame that is not an event', 'StreamEncoder.comment', async () => {
    const frame = encoder.comment('keep-alive');
    assert.ok(frame.endsWith(encoder.after), `it does not end like a frame: ${JSON.stringify(frame)}`);
    const isEvent = encoder.before !== '' && frame.startsWith(encoder.before);
    assert.ok(!isEvent, `it begins like an event: ${JSON.stringify(frame)}`);
  });
  contract.add('has an interval for comments', 'StreamEncoder.keepAliveEvery', async () => {
    const { keepAliveEvery } = encoder;
    assert.ok(Number.isFinite(keepAliveEvery) && keepAliveEvery > 0, `\`keepAliveEvery\` is ${keepAliveEvery}`);
  });
}
