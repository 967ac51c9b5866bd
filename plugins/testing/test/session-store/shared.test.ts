import { type IdempotencyKey, LeaseEnded, type SessionId } from '@plugboard/kernel/contracts';
import t from 'tap';
import { ManualClock } from '../../src/index.js';
import { sessionStoreContract } from '../../src/session-store/session-store-contract.js';
import { type Case, casesOf, failing } from '../failing.js';
import { type Arrival, type Place, PlainSharedStore, SharedData } from './plain-shared-store.js';

type Store = new (clock: ManualClock, kept: SharedData) => PlainSharedStore;

/** The cases about two stores over one database. */
function sharedCases(Store: Store): readonly Case[] {
  const server = (clock: ManualClock, kept: SharedData) => {
    const store = new Store(clock, kept);
    return { store, close: () => store.stop() };
  };
  const openTwo = async () => {
    const clock = new ManualClock();
    const kept = new SharedData(clock);
    return [server(clock, kept), server(clock, kept)] as const;
  };
  const open = async () => (await openTwo())[0];
  const others = casesOf((test) => sessionStoreContract(test, { open })).length;
  return casesOf((test) => sessionStoreContract(test, { open, openTwo })).slice(others);
}

const HOUR = 3_600_000;

class LinePerServer extends PlainSharedStore {
  override placesOf(line: string) {
    return super.placesOf(line).filter(({ server }) => server === this);
  }
}

/** Cases, and stores with one lie each that they must find. */
const LIES: readonly (readonly [name: string, Liar: Store])[] = [
  [
    'runs one turn of a session at a time, in the order of arrival',
    class LastComesFirst extends PlainSharedStore {
      override queue(...arrival: Parameters<PlainSharedStore['queue']>) {
        const queued = super.queue(...arrival);
        this.kept.places.splice(1, 0, ...this.kept.places.splice(-1)); // behind the one that runs
        return queued;
      }
    },
  ],
  [
    'lets every turn of many that come at once run',
    class AllRun extends PlainSharedStore {
      override isFirst() {
        return true;
      }
    },
  ],
  ['counts the turns of the other server, and refuses one beyond the limit', LinePerServer],
  [
    'returns the equal turn that is in line',
    class EqualForever extends PlainSharedStore {
      readonly seen = new Map<string | undefined, string>();
      override equalTurn(ahead: readonly Place[], arrival: Arrival) {
        const same = this.seen.get(arrival.fingerprint) ?? super.equalTurn(ahead, arrival);
        this.seen.set(arrival.fingerprint, same ?? arrival.turnId);
        return same;
      }
    },
  ],
  [
    'gives the lease back with a commit, with one that fails, and with `abandon`',
    class KeepsTheLease extends PlainSharedStore {
      override leave() {}
    },
  ],
  [
    'takes a turn out of line whose wait is given up',
    class HasItsOwnReason extends PlainSharedStore {
      override async until(holds: () => boolean, signal: AbortSignal) {
        await super.until(holds, signal).catch(() => {
          throw new LeaseEnded('cancelled');
        });
      }
    },
  ],
  [
    'ends turns of both servers, and answers when they have ended',
    class AnswersAtOnce extends PlainSharedStore {
      override async endTurns(...[id, why, signal, turnId]: Parameters<PlainSharedStore['endTurns']>) {
        void super.endTurns(id, why, signal, turnId);
      }
    },
  ],
  [
    'ends one turn by its id',
    class EndsAll extends PlainSharedStore {
      override async endTurns(...[id, why, signal, turnId]: Parameters<PlainSharedStore['endTurns']>) {
        for (const { ended } of this.kept.places) ended.abort(new LeaseEnded(why));
        await super.endTurns(id, why, signal, turnId);
      }
    },
  ],
  [
    'shows which sessions run, and one whose first turn is in line',
    class ShowsItsOwn extends PlainSharedStore {
      override running() {
        return super.running().filter(({ server }) => server === this);
      }
    },
  ],
  [
    'shows no session for work between turns',
    class ShowsAll extends PlainSharedStore {
      override running() {
        return this.kept.places;
      }
    },
  ],
  [
    'hands the session of a server that stops to the next turn, once with its input',
    class Twice extends PlainSharedStore {
      override takeInterrupted(id?: SessionId) {
        const taken = [...this.kept.interrupted.values()];
        return id ? taken : super.takeInterrupted();
      }
    },
  ],
  [
    'recovers a turn of a server that stops, also if no turn follows',
    class OnlyWithALease extends PlainSharedStore {
      override async recover() {
        return [];
      }
    },
  ],
  [
    'carries live texts to readers on the other server, from the beginning',
    class OpensForEach extends PlainSharedStore {
      override opened(offer: Parameters<PlainSharedStore['opened']>[0]) {
        return super.opened({ ...offer, opening: undefined });
      }
    },
  ],
  [
    'tells readers that the server of an offer has stopped',
    class EndsWithAText extends PlainSharedStore {
      override endOf(offer: string) {
        return { offer, text: '' };
      }
    },
  ],
  [
    'opens an offer only while the other server reads it',
    class OpensAtOnce extends PlainSharedStore {
      override offer(...[topic, open]: Parameters<PlainSharedStore['offer']>) {
        void open(new AbortController().signal)[Symbol.asyncIterator]().next();
        return super.offer(topic, open);
      }
    },
  ],
  [
    'counts requests of both servers in buckets of a minute',
    class RatePerServer extends PlainSharedStore {
      readonly own = new SharedData(this.clock);
      override count(use: Parameters<PlainSharedStore['count']>[0]) {
        return new PlainSharedStore(this.clock, this.own).count(use);
      }
    },
  ],
  [
    'PG-19 claims an idempotency key once over both servers, until its server stops',
    class ClaimPerServer extends PlainSharedStore {
      override readonly claims = new Map<string, string>();
    },
  ],
  [
    'lets one holder at a time have a name',
    class HeldAfterItsEnd extends PlainSharedStore {
      override async hold(name: string, signal: AbortSignal) {
        return { ...(await super.hold(name, signal)), signal };
      }
    },
  ],
  [
    'has the same time on both servers',
    class ClockOfItsOwn extends PlainSharedStore {
      override now() {
        return super.now() + HOUR;
      }
    },
  ],
  ['lets one holder at a time have a name', LinePerServer],
  [
    'runs one turn of a session at a time, in the order of arrival',
    class OldVersion extends PlainSharedStore {
      override async acquire(...[id, arrival, signal]: Parameters<PlainSharedStore['acquire']>) {
        const version = this.versionOf(id);
        const result = await super.acquire(id, arrival, signal);
        return result.kind === 'lease' ? { ...result, lease: { ...result.lease, isHeld: true, version } } : result;
      }
    },
  ],
  [
    'hands the session of a server that stops to the next turn, once with its input',
    class WithoutInput extends PlainSharedStore {
      override takeInterrupted(id?: SessionId) {
        return super.takeInterrupted(id).map((turn) => ({ ...turn, input: [] }));
      }
    },
  ],
  [
    'carries live texts to readers on the other server, from the beginning',
    class OnlyUtf8 extends PlainSharedStore {
      override async *read(...[topic, signal]: Parameters<PlainSharedStore['read']>) {
        for await (const { offer, text } of super.read(topic, signal))
          yield { offer, ...(text && { text: text.toWellFormed() }) };
      }
    },
  ],
  [
    'PG-19 claims an idempotency key once over both servers, until its server stops',
    class AnyoneReleases extends PlainSharedStore {
      override release(key: IdempotencyKey) {
        this.claims.delete(this.answerKeyOf(key));
      }
    },
  ],
  [
    'PG-19 claims an idempotency key once over both servers, until its server stops',
    class ClaimsForever extends PlainSharedStore {
      override stop() {
        this.claimed.clear();
        super.stop();
      }
    },
  ],
];

t.test('two stores that keep the contract pass', async (t) => {
  const cases = sharedCases(PlainSharedStore);
  t.same(await failing(cases), []);
  t.same([...new Set(LIES.map(([name]) => name))].sort(), cases.map(({ name }) => name).sort(), 'and each finds a lie');
});

for (const [name, Liar] of LIES) {
  t.test(`${Liar.name}: "${name}" finds the lie`, async (t) => {
    const found = sharedCases(Liar).find((one) => one.name === name);
    await t.rejects(async () => found?.run(), { cause: { name: 'AssertionError' } });
  });
}
