import type { ModelError, ModelEvent } from '@plugboard/kernel';
import { modelRequest } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { CLOCK, open, PROVIDERS, type ProviderName } from './connection.js';
import { frame as bedrockFrame } from './servers/bedrock.js';
import { frame as geminiFrame } from './servers/google.js';
import { namedEvent, type RawAnswer } from './servers/native-server.js';

type Frames = RawAnswer['frames'];
const NAMES = Object.keys(PROVIDERS) as ProviderName[];

/**
 * The events of an answer of these frames, and the error that ended it.
 *
 * @param frames its second argument makes the server wait until something was shown.
 */
async function play(
  t: Test,
  name: ProviderName,
  frames: (server: Awaited<ReturnType<typeof open>>['server'], shown: () => Promise<void>) => Frames,
) {
  const { server, connector } = await open(t, name);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.enqueue({ frames: frames(server, () => promise) });
  const events: ModelEvent[] = [];
  try {
    const request = modelRequest('Time?', { tools: [CLOCK] });
    for await (const batch of connector.stream(request, new AbortController().signal)) {
      events.push(...batch);
      resolve();
    }
  } catch (error) {
    const { message, retryable } = error as ModelError;
    return { events, types: events.map(({ type }) => type), message, retryable };
  }
  return { events, types: events.map(({ type }) => type), message: 'no error', retryable: false };
}

/** The same frames as part of another message. */
function ofAnother(frames: Frames): Frames {
  return frames.map((frame) => (typeof frame === 'string' ? frame.replaceAll(/"(msg_|resp_|r|cmpl_)1"/g, '"$12"') : frame));
}

/** An error of the provider inside an answer with status 200. */
const ERRORS: Record<ProviderName, string | Uint8Array> = {
  anthropic: namedEvent({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  google: geminiFrame({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
  vertex: geminiFrame({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
  bedrock: bedrockFrame('throttlingException', { message: 'Too many requests.' }, 'exception'),
  openai: namedEvent({
    type: 'error',
    code: 'server_error',
    message: 'Please try again later.',
    param: null,
    sequence_number: 1,
  }),
  azure: namedEvent({ type: 'error', code: 'server_error', message: 'Please try again later.', param: null, sequence_number: 1 }),
  xai: namedEvent({ type: 'error', code: 'service_unavailable', message: 'At capacity.', param: null }),
  mistral: `data: ${JSON.stringify({ object: 'error', message: 'Service tier capacity exceeded.', type: 'service_tier_capacity_exceeded', param: null, code: '3505' })}\n\n`,
};

for (const name of NAMES) {
  t.test(name, async (t) => {
    const error = ERRORS[name];
    const first = await play(t, name, () => [error]);
    t.match(first, { types: [], retryable: true, message: /overloaded|too many|try again|capacity/i });
    const later = await play(t, name, (server, shown) => [...server.frames({ text: ['Hel'], finish: null }), shown, error]);
    t.equal(later.types[0], 'text', 'shown before the error');
    t.match(later.message, /overloaded|too many|try again|capacity/i);
    t.notOk(later.types.includes('end'));

    for (const body of [' {"error":{"message":"Overloaded, try again later."}}', '[{"error":{"message":"At capacity."}}]']) {
      const json = await play(t, name, () => [body]);
      t.match(json, {
        types: [],
        retryable: true,
        message: /^the provider answered 200 with JSON instead of a stream \((Over|At c).*check base/,
      });
    }
    const page = await play(t, name, () => ['<html>', 'a proxy</html>']);
    t.match(page, {
      types: [],
      retryable: false,
      message: /with a web page instead of a stream; check baseUrl of models\.native, and/,
    });

    const message = /more than one message; check baseUrl of models\.native/;
    const long = { text: ['One ', 'two ', 'three'] };
    const spliced = await play(t, name, (server, shown) => {
      const frames = server.frames({ ...long, finish: null });
      return [...frames.slice(0, 4), shown, ...ofAnother(server.frames({ text: ['four'] }))];
    });
    t.match(spliced.message, message, 'two messages');
    t.notOk(spliced.types.includes('end'));

    const repeated = await play(t, name, (server, shown) => [...server.frames(long), shown, ...server.frames(long)]);
    const text = repeated.events.map((event) => (event.type === 'text' ? event.text : '')).join('');
    t.equal(text, 'One two three', 'what is repeated is not shown');
    // The package of Anthropic ends its answer with the first end.
    t.match(repeated.message, name === 'anthropic' ? 'no error' : message);

    const calls = [{ name: 'clock', input: { zone: 'Europe/Berlin' } }];
    const cut = await play(t, name, (server) => {
      const frames = server.frames({ calls, finish: null });
      return frames.slice(0, Math.max(1, frames.length - 2));
    });
    const broken = await play(t, name, (server) => {
      const bytes = Buffer.concat(server.frames({ text: ['Hello'] }).map((frame) => Buffer.from(frame as string)));
      return [bytes.subarray(0, bytes.length / 3)];
    });
    t.match(broken.message, /cut off/, 'in the middle of an event');
    t.ok(broken.retryable);
    t.match(cut.message, /cut off/, 'in the middle of arguments');
    t.ok(cut.retryable);
    t.notOk(cut.types.includes('end'));
  });
}
