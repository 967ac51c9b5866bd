import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { conversationId } from '@plugboard/kernel/contracts';
import t from 'tap';

/** Runs code beside the watchdog, in a process of its own. */
async function run(code: string, env: Readonly<Record<string, string>> = {}) {
  const program = `
    import { endWhenBlocked } from ${JSON.stringify(import.meta.resolve('../src/running/watchdog.ts'))};
    const end = endWhenBlocked(process.env.FILE, 50);
    ${code}
  `;
  const child = spawn(process.execPath, [...process.execArgv, '--input-type=module', '--eval', program], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  const [stderr, [code_, signal]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { stderr, code: code_, signal };
}

for (const [kind, code] of [
  ['an endless loop', 'for (;;);'],
  ['a pattern that backtracks', "/^(a+)+$/.test('a'.repeat(60) + '!');"],
] as const) {
  t.test(`S-57 a process whose event loop stands still ends with the place, for ${kind}`, async (t) => {
    const { stderr, signal } = await run(`setTimeout(function standsStill() { ${code} }, 200);`);
    t.match(stderr, /plugboard: the event loop has stood still for 1 s in standsStill \(.*:\d+:\d+\); the process ends\n$/);
    t.equal(signal, 'SIGKILL');
  });
}

t.test('a process that blocks for less goes on, and the watch keeps no process alive', async (t) => {
  const short = 'const end = performance.now() + 300; while (performance.now() < end);';
  t.match(await run(`setTimeout(() => { ${short} }, 100);`), { stderr: '', code: 0 });
  t.match(await run(`end(); setTimeout(() => { ${short.replace('300', '2_500')} }, 100);`), { stderr: '', code: 0 });
});

t.test('S-19 the session that was worked on is named, and closed for the next process', async (t) => {
  const file = join(t.testdir(), 'data', 'blocked-sessions.json');
  const { stderr, signal } = await run(
    `
    import { tracingChannel } from 'node:diagnostics_channel';
    import { BlockedSessions } from ${JSON.stringify(import.meta.resolve('../src/running/blocked-sessions.ts'))};
    new BlockedSessions('plugboard.yaml', 'data').follow();
    const work = async (key, then) => {
      tracingChannel('plugboard.store').start.publish({ session: { project: 'p', agent: 'a', key } });
      await new Promise(setImmediate);
      then?.();
    };
    work('stuck', function standsStill() { for (;;); });
    work('innocent');
    `,
    { FILE: file },
  );
  const id = conversationId({ project: 'p', agent: 'a', key: 'stuck' });
  t.match(stderr, `the process ends; the session ${id} stays closed while it is in ${file}`);
  t.equal(signal, 'SIGKILL');
  t.strictSame(JSON.parse(readFileSync(file, 'utf8')), [id]);
});
