// Preloaded into every server under test. Reports over IPC what the process has used.
process.on('message', (question) => {
  if (question === 'cpu') {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  } else if (question === 'memory') {
    globalThis.gc?.();
    globalThis.gc?.();
    const { heapUsed, external, rss } = process.memoryUsage();
    process.send?.({ heap: heapUsed + external, rss });
  }
});
process.channel?.unref();
