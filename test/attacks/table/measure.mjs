import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { seconds, size } from './format.mjs';
import { Neighbour } from './neighbour.mjs';
import { Subject } from './subject.mjs';

/** Milliseconds that an attack is watched at most, and after it was answered. */
const [WATCH, AFTER] = [12_000, 2_000];

/**
 * Attacks a server of its own.
 *
 * @param attack prepares it for a `Subject`, and returns what sends it and resolves when it is
 *   answered.
 * @param options where the repository and the hostile upstream are.
 * @returns the columns of a row.
 */
export async function measure(name, attack, options) {
  const subject = await Subject.start(options);
  const send = await attack(subject);
  const start = subject.resetPeak();
  await subject.longestStall();
  const begun = performance.now();
  const neighbour = new Neighbour(subject);
  await Promise.race([send().then(() => wait(AFTER)), wait(WATCH), once(subject.child, 'exit')]);
  const stall = subject.isAlive ? await subject.longestStall() : undefined;
  const length = performance.now() - begun;
  subject.isOver = true;
  await Promise.race([neighbour.ended, wait(3_000)]);
  const { isAlive, peak } = subject;
  await subject.stop();
  return [
    name,
    size(subject.bytes),
    `+${Math.round(peak - start)} MiB`,
    isAlive ? stallOf(stall) : `ended after ${seconds(subject.endedAt - begun)}`,
    `${(neighbour.served / (length / 1_000)).toFixed(1)} /s`,
    seconds(neighbour.slowest),
    String(neighbour.refused),
    [subject.answers, subject.note].filter(Boolean).join('; '),
  ];
}

function stallOf(stall) {
  if (!stall) return 'stands still';
  return `${Math.round(stall.ms)} ms, ${Math.round(stall.worked)} of them working`;
}
