// Imported into a server (`--expose-gc --import`). On SIGUSR2 it collects garbage and logs the most
// bytes that were live since the last time: heap and buffers outside of it, after any full
// collection. So it sees what is held while the server works, too, and not only between tasks.
import { GCProfiler } from 'node:v8';

let profiler = new GCProfiler();
profiler.start();

process.on('SIGUSR2', () => {
  globalThis.gc();
  const { statistics } = profiler.stop();
  profiler = new GCProfiler();
  profiler.start();
  const live = statistics
    .filter(({ gcType }) => gcType === 'MarkSweepCompact')
    .map(({ afterGC: { heapStatistics } }) => heapStatistics.usedHeapSize + heapStatistics.externalMemory);
  process.stderr.write(`${JSON.stringify({ msg: 'collected', live: Math.max(...live) })}\n`);
});
