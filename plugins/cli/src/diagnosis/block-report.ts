import type { Worker } from 'node:worker_threads';
import { PROGRAM } from '../base/program.js';
import { onCalls, runningCalls } from './running-calls.js';

/** Milliseconds without a sign of life until the report. */
const LIMIT = 5_000;

/** The plugins of this scope do not block, and a start without a thread is faster. */
const OWN_SCOPE = `${PROGRAM.name.split('/')[0]}/`;

/** The thread: each message is a sign of life, with what runs now. */
const THREAD = `
  const { parentPort, workerData: { limit, to } } = require('node:worker_threads');
  let timer;
  parentPort.on('message', (calls) => {
    clearTimeout(timer);
    if (calls === '') return;
    const blocked = 'blocked for ' + limit / 1000 + ' s in ' + calls;
    const text = 'plugboard: ' + blocked + '; its code does not return, perhaps an endless loop\\n';
    timer = setTimeout(() => require('node:fs').writeSync(to, text), limit);
  });`;

/**
 * Reports plugins whose code blocks the process while they are loaded or started, such as an
 * endless loop at the top level of a module. Only another thread can: nothing else runs in this
 * one.
 *
 * @param to the file descriptor for the report.
 * @returns what ends the watch.
 */
export function reportBlocking(limit = LIMIT, to = 2): () => void {
  let thread: Worker | undefined;
  const tell = () => {
    const calls = runningCalls().filter(({ packageName }) => packageName?.startsWith(OWN_SCOPE) !== true);
    if (calls.length > 0) thread ??= startThread(limit, to);
    thread?.postMessage(calls.map(({ text }) => text).join(' or '));
  };
  const heartbeat = setInterval(() => thread && tell(), limit / 5).unref();
  const stopListening = onCalls(tell);
  return () => {
    stopListening();
    clearInterval(heartbeat);
    void thread?.terminate();
  };
}

function startThread(limit: number, to: number): Worker {
  const { Worker } = process.getBuiltinModule('node:worker_threads'); // loaded only if it is needed
  const thread = new Worker(THREAD, { eval: true, workerData: { limit, to }, execArgv: [] });
  thread.unref();
  return thread;
}
