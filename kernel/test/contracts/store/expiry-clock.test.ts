import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ExpiryClock } from '../../../src/contracts/store/expiry-clock.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A clock whose wall time a test can change. */
class WrongClock extends ManualClock {
  ahead = 0;

  override now(): number {
    return super.now() + this.ahead;
  }
}

t.test('S-76 a wall clock that jumps changes nothing for an hour, in either direction', (t) => {
  for (const jump of [40 * DAY, -40 * DAY]) {
    const clock = new WrongClock();
    const expiry = new ExpiryClock(clock);
    const right = () => clock.now() - clock.ahead;
    clock.advance(DAY);
    t.same([expiry.now(), expiry.stamp()], [right(), right()]);
    clock.ahead = jump;
    for (let minute = 0; minute < 59; minute++) {
      t.ok(expiry.now() <= right(), 'nothing expires too early');
      t.ok(expiry.stamp() >= right(), 'nothing is written that would');
      clock.advance(MINUTE);
    }
    clock.ahead = 0;
    t.same([expiry.now(), expiry.stamp()], [right(), right()], 'it was wrong for a while');
    clock.ahead = jump;
    expiry.now();
    clock.advance(HOUR);
    t.same([expiry.now(), expiry.stamp()], [clock.now(), clock.now()], 'it is right, after all');
  }
  t.end();
});

t.test('S-76 a wall clock that is ahead when the process starts waits too, if something older was written', (t) => {
  const clock = new WrongClock();
  const last = clock.now() - MINUTE;
  clock.ahead = 40 * DAY;
  const expiry = new ExpiryClock(clock, last);
  t.equal(expiry.now(), last);
  t.equal(expiry.stamp(), clock.now());
  clock.advance(HOUR);
  t.equal(expiry.now(), clock.now());
  t.equal(new ExpiryClock(clock, clock.now() + DAY).now(), clock.now(), 'a time to come says nothing');
  t.end();
});

t.test('a clock that is corrected little by little is followed', (t) => {
  const clock = new WrongClock();
  const expiry = new ExpiryClock(clock);
  for (let hour = 0; hour < 1_000; hour++) {
    clock.advance(HOUR);
    clock.ahead += 1_000;
    t.equal(expiry.now(), clock.now());
  }
  t.end();
});
