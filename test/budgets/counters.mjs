// Preloaded into the server under test. Counts what its turns allocate and begin, and answers over
// IPC.
import { createHook } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { Session } from 'node:inspector';
import { Socket } from 'node:net';
import { GCProfiler, getHeapStatistics } from 'node:v8';

const counts = { promises: 0, ticks: 0, timers: 0, controllers: 0, listeners: 0, writes: 0 };
const KINDS = { PROMISE: 'promises', TickObject: 'ticks', Immediate: 'ticks', Timeout: 'timers' };
const hook = createHook({
  init(_id, type) {
    const kind = KINDS[type];
    if (kind !== undefined) counts[kind]++;
  },
});

const { AbortController } = globalThis;
class CountedController extends AbortController {
  constructor() {
    super();
    counts.controllers++;
  }
}
/** Methods that are replaced while calls are counted, because counting allocates, too. */
const counted = [
  [EventEmitter.prototype, 'addListener', 'listeners'],
  [EventEmitter.prototype, 'on', 'listeners'],
  [EventTarget.prototype, 'addEventListener', 'listeners'],
  [Socket.prototype, '_writeGeneric', 'writes'],
].map(([prototype, name, kind]) => {
  const original = prototype[name];
  const replacement = function (...args) {
    counts[kind]++;
    return original.apply(this, args);
  };
  return { prototype, name, original, replacement };
});

const profiler = new Session();
profiler.connect();

let heapBefore = 0;
let garbage;
const answers = {
  startCounting() {
    for (const kind of Object.keys(counts)) counts[kind] = 0;
    globalThis.AbortController = CountedController;
    for (const { prototype, name, replacement } of counted) prototype[name] = replacement;
    hook.enable();
  },
  stopCounting() {
    hook.disable();
    globalThis.AbortController = AbortController;
    for (const { prototype, name, original } of counted) prototype[name] = original;
    return { ...counts };
  },
  startAllocating() {
    globalThis.gc();
    garbage = new GCProfiler();
    garbage.start();
    heapBefore = getHeapStatistics().used_heap_size;
  },
  stopAllocating() {
    const bytes = getHeapStatistics().used_heap_size - heapBefore;
    return { bytes, collections: garbage.stop().statistics.length };
  },
  startSampling() {
    return ask('HeapProfiler.startSampling', {
      samplingInterval: 4_096,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
  },
  async stopSampling() {
    const { profile } = await ask('HeapProfiler.stopSampling');
    return profile;
  },
};

function ask(method, params) {
  return new Promise((resolve, reject) => {
    profiler.post(method, params, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

process.on('message', async (question) => process.send?.((await answers[question]()) ?? null));
process.channel?.unref();
