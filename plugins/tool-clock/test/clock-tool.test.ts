import { ToolSources } from '@plugboard/kernel';
import { checkOptions, ManualClock, pluginContract, testContext, testToolCall, toolSourceContract } from '@plugboard/testing';
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

t.test('returns the time in the zone that the model names', async (t) => {
  t.equal(await ask({ timeZone: 'Europe/Paris' }), 'Saturday, 21 November 2026 at 14:05:09 UTC+1 (Europe/Paris)');
  t.equal(await ask({ timeZone: 'Asia/Kolkata' }), 'Saturday, 21 November 2026 at 18:35:09 UTC+5:30 (Asia/Kolkata)');
});

t.test('returns the time in the configured zone if the model names none', async (t) => {
  t.equal(await ask({}), 'Saturday, 21 November 2026 at 13:05:09 UTC+0 (UTC)');
  t.equal(await ask({}, { timeZone: 'America/New_York' }), 'Saturday, 21 November 2026 at 08:05:09 UTC-5 (America/New_York)');
});

t.test('names the default zone in the description of the tool', async (t) => {
  const [tool] = await source({ timeZone: 'Asia/Tokyo' }).tools(new AbortController().signal);
  t.match(JSON.stringify(tool?.inputSchema), 'Default: Asia/Tokyo.');
});

t.test('gives the model an example of a time zone if it names an unknown one', async (t) => {
  await t.rejects(ask({ timeZone: 'Mars/Olympus' }), {
    message: /"Mars\/Olympus" is not an IANA time zone: use a name such as "Europe\/Paris"/,
  });
});

t.test('refuses options with an unknown zone', async (t) => {
  t.same(checkOptions(plugin, { timeZone: 'Paris' }).faults, [
    'timeZone: "Paris" is not an IANA time zone: use a name such as "Europe/Paris"',
  ]);
});
