import fc from 'fast-check';
import t from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { type LiveEvent, LiveSocket } from '../../../test/support/live-socket.js';
import { TestServer } from '../../../test/support/test-server.js';
import { assertGrammar, type SentEvent } from '../../open-responses/test/support/events.js';

type Step =
  | { readonly kind: 'create'; readonly lane: string; readonly store: boolean; readonly continues: boolean }
  | { readonly kind: 'cancel' | 'resume'; readonly which: number; readonly after: number }
  | { readonly kind: 'drop' | 'nonsense' | 'wait' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      lane: fc.constantFrom('', 'a', 'b'),
      store: fc.boolean(),
      continues: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('cancel' as const, 'resume' as const),
      which: fc.nat(5),
      after: fc.integer({ min: -1, max: 12 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('drop' as const, 'nonsense' as const, 'wait' as const) }) },
);

const TERMINAL = ['response.completed', 'response.failed', 'response.incomplete'];

t.test('C-231 whatever a client does, each response on a connection has one valid sequence of events', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  app.models.respond(({ body }) => {
    const number = body.messages.length;
    if (number % 5 === 4) return { status: 400 };
    return { text: ['one ', new Promise((resolve) => setImmediate(resolve)), 'two ', 'three'] };
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
      let live = await LiveSocket.open(t, app);
      const connections = [live];
      const ids = () =>
        connections
          .flatMap(({ events }) => events.filter(({ type }) => type === 'response.created'))
          .map((e) => e.response?.id ?? '');
      for (const one of steps) {
        switch (one.kind) {
          case 'create': {
            const previous = one.continues ? ids().at(-1) : undefined;
            live.create({
              model: 'assistant',
              input: 'x',
              store: one.store,
              ...(one.lane && { stream_id: one.lane }),
              ...(previous && { previous_response_id: previous }),
            });
            break;
          }
          case 'cancel':
            live.send({ type: 'response.cancel', response_id: ids().at(one.which) ?? 'resp_x' });
            break;
          case 'resume':
            // On a connection of its own, so that its events are not mixed with the first ones.
            connections.push(await LiveSocket.open(t, app));
            connections
              .at(-1)
              ?.send({ type: 'svc:response.resume', response_id: ids().at(one.which) ?? 'resp_x', starting_after: one.after });
            break;
          case 'drop':
            live.ws.terminate();
            live = await LiveSocket.open(t, app);
            connections.push(live);
            break;
          case 'nonsense':
            live.send('{');
            break;
          case 'wait':
            await live.roundTrip().catch(() => {});
            break;
        }
      }
      await settled(live);
      for (const { events, ws } of connections) {
        for (const one of byResponse(events)) {
          const isWhole = one[0]?.sequence_number === 0;
          const isOver = TERMINAL.includes(one.at(-1)?.type ?? '');
          if (isWhole && isOver) assertGrammar(one as unknown as SentEvent[]);
          else consecutive(one);
          if (ws === live.ws && isWhole && !isOver) throw new Error(`no end: ${JSON.stringify(one.at(-1))}`);
        }
      }
      for (const { ws } of connections) ws.terminate();
    }),
    { numRuns: 60, seed: 7 },
  );
  t.equal((await app.get('/health')).status, 200);
  t.strictSame(
    app.started.logs.filter(({ level }) => level === 'error'),
    [],
  );
});

/** Waits until every response that was accepted on the connection has ended. */
async function settled(live: LiveSocket): Promise<void> {
  const asked = () => live.events.filter(({ type }) => type === 'response.created').length;
  const ended = () => live.events.filter(({ type }) => TERMINAL.includes(type)).length;
  for (let quiet = 0; quiet < 5; ) {
    const before = live.events.length;
    live.send({ type: 'svc:ping', id: 0 });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const isQuiet = live.events.slice(before).every(({ type }) => type === 'svc:pong') && asked() === ended();
    quiet = isQuiet ? quiet + 1 : 0;
  }
}

/**
 * The events of each response: lanes may interleave, so they are told apart by item ids and the
 * response's own.
 */
function byResponse(events: readonly LiveEvent[]): LiveEvent[][] {
  const groups = new Map<string, LiveEvent[]>();
  const lanes = new Map<string, string>();
  for (const event of events) {
    if (event.sequence_number === undefined) continue;
    const lane = event.stream_id ?? '';
    const item = (event.item as { id: string } | undefined)?.id ?? (event.item_id as string | undefined);
    const id = event.response?.id.slice(5) ?? item?.split('_')[1] ?? lanes.get(lane) ?? '';
    lanes.set(lane, id);
    const group = groups.get(id) ?? [];
    group.push(event);
    groups.set(id, group);
  }
  return [...groups.values()];
}

function consecutive(events: readonly LiveEvent[]): void {
  for (const [at, event] of events.entries()) {
    const expected = (events[0]?.sequence_number ?? 0) + at;
    if (event.sequence_number !== expected) throw new Error(`event ${event.sequence_number} instead of ${expected}`);
  }
}
