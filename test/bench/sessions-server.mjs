// The server under test of sessions.mjs: its clock can be advanced, so that sessions hibernate
// without waiting.
import { startServer } from '../../plugins/testing/dist/index.js';

const HIBERNATED = 20 * 60_000;

/** The system's clock, whose timers can be made due. */
class LeapingClock {
  #ahead = 0;
  #timers = new Set();

  now() {
    return Date.now() + this.#ahead;
  }

  monotonic() {
    return performance.now() + this.#ahead;
  }

  after(ms, run) {
    const timer = { at: 0, handle: undefined };
    const arm = () => {
      timer.at = this.monotonic() + ms;
      timer.handle = setTimeout(timer.run, ms).unref();
    };
    timer.run = () => {
      this.#timers.delete(timer);
      run();
    };
    const cancel = () => {
      clearTimeout(timer.handle);
      this.#timers.delete(timer);
    };
    this.#timers.add(timer);
    arm();
    return {
      cancel,
      refresh: () => {
        cancel();
        this.#timers.add(timer);
        arm();
      },
    };
  }

  /** Moves on, a minute at a time. */
  leap(ms) {
    for (let passed = 0; passed < ms; passed += 60_000) {
      this.#ahead += 60_000;
      for (const timer of [...this.#timers].filter(({ at }) => at <= this.monotonic())) {
        clearTimeout(timer.handle);
        timer.run();
      }
    }
  }
}

const clock = new LeapingClock();
const server = await startServer(
  `
transports:
  http: { port: 0 }
  chat-completions: {}
models:
  bench: { use: openai, model: bench, baseUrl: "http://127.0.0.1:${process.env.MODEL_PORT}/v1" }
agents:
  assistant: { model: bench, history: { policy: truncate, maxMessages: 10 } }
sessions: { use: sqlite, path: ${JSON.stringify(process.env.SESSIONS)} }
log: { level: warn }
`,
  { clock },
);
process.send({ port: Number(new URL(server.url).port) });
process.on('message', (question) => {
  if (question !== 'hibernate') return;
  clock.leap(HIBERNATED);
  process.send('done');
});
process.on('disconnect', () => process.exit());
