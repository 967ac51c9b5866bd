import { ToolSources } from '@plugboard/kernel';
import {
  checkOptions,
  ManualClock,
  pluginContract,
  testContext,
  testToolCall,
  toolSourceContract,
} from '@plugboard/kernel/testing';
import t from 'tap';
import plugin from '../src/index.js';

const clock = new ManualClock(Date.UTC(2026, 10, 21, 13, 5, 9));

function source(config = {}) {
  return testContext(plugin, { config, clock, entry: 'tools.clock' }).contributed(ToolSources, 'clock');
}

async function ask(input: Record<string, unknown>, config = {}): Promise<unknown> {
  const [tool] = await source(config).tools(new AbortController().signal);
  return tool?.run(input, testToolCall());
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('fulfils the tool source contract', async (t) => {
  const calls = [
    { tool: 'clock', input: {} },
    { tool: 'clock', input: { timeZone: 'Asia/Tokyo' } },
  ] as const;
  toolSourceContract(t.test, { open: () => source(), calls });
});

t.test('tells the time in the zone that the model names', async (t) => {
  t.equal(await ask({ timeZone: 'Europe/Paris' }), 'Saturday, 21 November 2026 at 14:05:09 UTC+1 (Europe/Paris)');
  t.equal(await ask({ timeZone: 'Asia/Kolkata' }), 'Saturday, 21 November 2026 at 18:35:09 UTC+5:30 (Asia/Kolkata)');
});

t.test('tells it in the zone of the settings where the model names none', async (t) => {
  t.equal(await ask({}), 'Saturday, 21 November 2026 at 13:05:09 UTC+0 (UTC)');
  t.equal(await ask({}, { timeZone: 'America/New_York' }), 'Saturday, 21 November 2026 at 08:05:09 UTC-5 (America/New_York)');
});

t.test('tells the model which zone it falls back to', async (t) => {
  const [tool] = await source({ timeZone: 'Asia/Tokyo' }).tools(new AbortController().signal);
  t.match(JSON.stringify(tool?.inputSchema), 'Left out: Asia/Tokyo.');
});

t.test('tells the model what a time zone looks like when it names none of this world', async (t) => {
  await t.rejects(ask({ timeZone: 'Mars/Olympus' }), {
    message: /"Mars\/Olympus" is no IANA time zone; use a name such as "Europe\/Paris"/,
  });
});

t.test('refuses settings with a zone that does not exist', async (t) => {
  t.same(checkOptions(plugin, { timeZone: 'Paris' }).faults, [
    'timeZone: "Paris" is no IANA time zone; a name such as "Europe/Paris" is',
  ]);
});
