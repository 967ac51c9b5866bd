import type { ModelError, ModelEvent } from '@plugboard/kernel';
import { modelRequest } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { CLOCK, open, PROVIDERS, type ProviderName } from './connection.js';
import { frame as bedrockFrame } from './servers/bedrock.js';
import { frame as geminiFrame } from './servers/google.js';
import { namedEvent, type RawAnswer } from './servers/native-server.js';

type Frames = RawAnswer['frames'];
const NAMES = Object.keys(PROVIDERS) as ProviderName[];
/** Sends what was said before, so that it is shown. */
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

/** The events of an answer of these frames, and the error that ended it. */
async function play(t: Test, name: ProviderName, frames: (server: Awaited<ReturnType<typeof open>>['server']) => Frames) {
  const { server, connector } = await open(t, name);
  server.enqueue({ frames: frames(server) });
  const events: ModelEvent[] = [];
  try {
    const request = modelRequest('Time?', { tools: [CLOCK] });
    for await (const batch of connector.stream(request, new AbortController().signal)) events.push(...batch);
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
const ERRORS: Partial<Record<ProviderName, string | Uint8Array>> = {
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
};

for (const name of NAMES) {
  t.test(name, async (t) => {
    const error = ERRORS[name];
    if (error !== undefined) {
      const first = await play(t, name, () => [error]);
      t.match(first, { types: [], retryable: true, message: /overloaded|too many|try again|capacity/i });
      const later = await play(t, name, (server) => [...server.frames({ text: ['Hel'], finish: null }), pause, error]);
      t.equal(later.types[0], 'text', 'shown before the error');
      t.match(later.message, /overloaded|too many|try again|capacity/i);
      t.notOk(later.types.includes('end'));
    }

    const message = /more than one message|while message "msg_1" is still open/;
    const long = { text: ['One ', 'two ', 'three'] };
    const spliced = await play(t, name, (server) => {
      const frames = server.frames({ ...long, finish: null });
      return [...frames.slice(0, 4), pause, ...ofAnother(server.frames({ text: ['four'] }))];
    });
    t.match(spliced.message, message, 'two messages');
    t.notOk(spliced.types.includes('end'));

    const repeated = await play(t, name, (server) => [...server.frames(long), pause, ...server.frames(long)]);
    const text = repeated.events.map((event) => (event.type === 'text' ? event.text : '')).join('');
    t.equal(text, 'One two three', 'what is repeated is not shown');
    // The package of Anthropic ends its answer with the first end.
    t.match(repeated.message, name === 'anthropic' ? 'no error' : message);

    const calls = [{ name: 'clock', input: { zone: 'Europe/Berlin' } }];
    const cut = await play(t, name, (server) => {
      const frames = server.frames({ calls, finish: null });
      return frames.slice(0, Math.max(1, frames.length - 2));
    });
    t.match(cut.message, /cut off|finish reason "other"/, 'in the middle of arguments');
    t.ok(cut.retryable);
    t.notOk(cut.types.includes('end'));
  });
}
