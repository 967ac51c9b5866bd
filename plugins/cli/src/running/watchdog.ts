import { url } from 'node:inspector';
import { Worker } from 'node:worker_threads';

/** Checks in a row without a sign of life, after which the process ends. */
const MAX_MISSED = 20;
/** Milliseconds between checks. */
const INTERVAL = 1_000;

/** What both threads share: a number that changes while the event loop runs. */
const [BEATS, IS_DEBUGGED] = [0, 1];

/**
 * The thread. It counts its own checks rather than time: a process that was stopped as a whole
 * (SIGSTOP, a laptop asleep) has missed none. The debugger says where the main thread is, within a
 * second if it can.
 */
const THREAD = `
  const { Session } = require('node:inspector');
  const { writeSync } = require('node:fs');
  const { workerData: { shared, interval, most, to } } = require('node:worker_threads');
  const [BEATS, IS_DEBUGGED] = [${BEATS}, ${IS_DEBUGGED}];
  let seen = -1;
  let missed = 0;
  const timer = setInterval(() => {
    const beats = Atomics.load(shared, BEATS);
    missed = beats === seen && Atomics.load(shared, IS_DEBUGGED) === 0 ? missed + 1 : 0;
    seen = beats;
    if (missed < most) return;
    clearInterval(timer);
    report();
  }, interval);
  function report() {
    setTimeout(() => end('in native code'), 1_000);
    const session = new Session();
    session.connectToMainThread();
    const files = new Map();
    session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => files.set(scriptId, url));
    session.on('Debugger.paused', ({ params: { callFrames: [frame] } }) => {
      const { scriptId, lineNumber, columnNumber } = frame.location;
      const place = [files.get(scriptId), lineNumber + 1, columnNumber + 1].join(':');
      end('in ' + (frame.functionName || 'a function') + ' (' + place + ')');
    });
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  }
  function end(where) {
    const seconds = (interval * most) / 1000;
    try {
      writeSync(to, 'plugboard: the event loop has stood still for ' + seconds + ' s ' + where + '; the process ends\\n');
    } finally {
      process.kill(process.pid, 'SIGKILL');
    }
  }
`;

/**
 * Ends the process if its event loop stands still for 20 s (S-57), with one line that says where: a
 * process that serves nobody, and cannot be stopped by SIGTERM, must be started again. Not while a
 * debugger is attached.
 *
 * @param to the file descriptor for the line.
 * @returns what ends the watch.
 */
export function endWhenBlocked(interval = INTERVAL, to = 2): () => void {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const beat = () => {
    Atomics.add(shared, BEATS, 1);
    Atomics.store(shared, IS_DEBUGGED, url() === undefined ? 0 : 1);
  };
  beat();
  const heartbeat = setInterval(beat, interval / 2).unref();
  const thread = new Worker(THREAD, {
    eval: true,
    workerData: { shared, interval, most: MAX_MISSED, to },
    execArgv: [],
    env: {},
  });
  thread.unref();
  // A thread that could not be started is no reason to end.
  thread.on('error', () => clearInterval(heartbeat));
  return () => {
    clearInterval(heartbeat);
    void thread.terminate();
  };
}
