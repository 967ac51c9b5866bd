import { url } from 'node:inspector';
import { Worker } from 'node:worker_threads';
import { CURRENT_SESSION } from './blocked-sessions.js';

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
  const { mkdirSync, readFileSync, writeFileSync, writeSync } = require('node:fs');
  const { dirname } = require('node:path');
  const { workerData: { shared, interval, most, to, file } } = require('node:worker_threads');
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
      const where = 'in ' + (frame.functionName || 'a function') + ' (' + place + ')';
      setTimeout(() => end(where), 500);
      const expression = 'globalThis[Symbol.for("${CURRENT_SESSION.description}")]?.()';
      const asked = { callFrameId: frame.callFrameId, expression, returnByValue: true };
      session.post('Debugger.evaluateOnCallFrame', asked, (_, answer) => end(where, answer?.result?.value));
    });
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  }
  function end(where, conversation) {
    const seconds = (interval * most) / 1000;
    const line = 'plugboard: the event loop has stood still for ' + seconds + ' s ' + where + '; the process ends';
    try {
      writeSync(to, line + (conversation && file ? '; ' + block(conversation) : '') + '\\n');
    } finally {
      process.kill(process.pid, 'SIGKILL');
    }
  }
  /** Adds a session to the file of those that the next process refuses. */
  function block(conversation) {
    let known = [];
    try {
      known = JSON.parse(readFileSync(file, 'utf8'));
    } catch {}
    try {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, JSON.stringify([...new Set([...known, conversation])]));
      return 'the session ' + conversation + ' stays closed while it is in ' + file;
    } catch (error) {
      return 'the session ' + conversation + ' could not be closed: ' + error.message;
    }
  }
`;

/**
 * Ends the process if its event loop stands still for 20 s (S-57), with one line that says where: a
 * process that serves nobody, and cannot be stopped by SIGTERM, must be started again. Not while a
 * debugger is attached.
 *
 * @param file gets the id of the session that was worked on, so that the next process refuses it.
 * @param to the file descriptor for the line.
 * @returns what ends the watch.
 */
export function endWhenBlocked(file?: string, interval = INTERVAL, to = 2): () => void {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const beat = () => {
    Atomics.add(shared, BEATS, 1);
    Atomics.store(shared, IS_DEBUGGED, url() === undefined ? 0 : 1);
  };
  beat();
  const heartbeat = setInterval(beat, interval / 2).unref();
  const thread = new Worker(THREAD, {
    eval: true,
    workerData: { shared, interval, most: MAX_MISSED, to, file },
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
