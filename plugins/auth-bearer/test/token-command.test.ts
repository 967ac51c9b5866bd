import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandArguments, type CommandFamily, Commands } from '@plugboard/kernel';
import { ManualClock, SequentialIds, testContext } from '@plugboard/kernel/testing';
import t, { type Test } from 'tap';
import { writeAtomically } from '../src/atomic-write.js';
import { digestOf } from '../src/digest.js';
import plugin from '../src/index.js';
import { usesFile } from '../src/last-use.js';
import type { TokenRecord } from '../src/token-record.js';
import { TOKEN } from './issued.js';

const DAY = 86_400_000;
const CONFIGURED = { name: 'ops', project: 'default', token: 'hand-written-secret', expires: '2027-01-31' };

/** `plugboard token …` over an empty folder. */
function desk(t: Test) {
  const folder = t.testdir({});
  const clock = new ManualClock();
  const ctx = testContext(plugin, {
    config: { tokensFile: 'data/tokens.json', tokens: [CONFIGURED] },
    folder,
    clock,
    ids: new SequentialIds(),
    check: { entries: (section) => ({ projects: ['acme', 'other'], agents: ['billing', 'clerk'] })[section] ?? [] },
  });
  const family = ctx.contributed(Commands, 'token') as CommandFamily;
  const path = join(folder, 'data/tokens.json');

  /** Runs an action. A word without `--` before it is a positional; a switch is an option with an empty text. */
  async function run(
    action: string,
    options: Readonly<Record<string, string>> = {},
    positionals: readonly string[] = [],
    input: readonly string[] = [],
  ) {
    const printed: string[] = [];
    const notes: string[] = [];
    const args: CommandArguments = { positionals, text: (option) => options[option], has: (option) => option in options };
    const terminal = {
      input: (async function* () {
        yield* input.map((text) => Buffer.from(text));
      })(),
      print: (text: string) => void printed.push(text),
      note: (text: string) => void notes.push(text),
    };
    const code = await family.actions[action]?.run(args, terminal);
    t.equal(code, 0);
    return { out: printed.join('\n'), notes: notes.join('\n') };
  }
  const records = (): readonly TokenRecord[] => JSON.parse(readFileSync(path, 'utf8')).tokens;
  const create = (options: Readonly<Record<string, string>> = {}) => run('create', { project: 'acme', name: 'ci', ...options });
  return { run, create, records, clock, path };
}

t.test('create prints the token alone, and what it is for beside it', async (t) => {
  const { create, records, path } = desk(t);
  const { out, notes } = await create({
    scopes: 'chat, models:read',
    agents: 'billing,billing',
    expires: '90d',
    'requests-per-minute': '60',
    'running-turns': '4',
  });
  t.match(out, /^svcp_[0-9A-Za-z]{38}$/);
  t.equal(
    notes,
    [
      'This is token tok_0000000000000002 ("ci" of project acme). It is shown only now: keep it safe.',
      'It allows chat, models:read, with no agents but billing; it expires at 2026-04-01T00:00:00.000Z.',
      'A running server knows it within 10 seconds.',
    ].join('\n'),
  );
  t.match(records(), [
    {
      id: 'tok_0000000000000002',
      project: 'acme',
      name: 'ci',
      sha256: digestOf(out),
      hint: `${out.slice(0, 9)}…${out.slice(-4)}`,
      scopes: ['chat', 'models:read'],
      agents: ['billing'],
      requestsPerMinute: 60,
      runningTurns: 4,
      createdAt: '2026-01-01T00:00:00.000Z',
      createdBy: /./,
      expiresAt: '2026-04-01T00:00:00.000Z',
    },
  ]);
  t.notMatch(readFileSync(path, 'utf8'), out, 'the token itself is kept nowhere');
  t.equal(statSync(path).mode & 0o777, 0o600);
});

t.test('create knows what to take where nothing is said, and prints JSON for programs', async (t) => {
  const { create } = desk(t);
  const { out, notes } = await create({ json: '' });
  const shown = JSON.parse(out);
  t.match(shown, { token: /^svcp_/, id: /^tok_/, scopes: ['chat', 'models:read', 'sessions:read', 'sessions:write'] });
  t.notOk('sha256' in shown || 'expiresAt' in shown || 'agents' in shown);
  t.equal(notes, '');
  t.match((await create({ name: 'boss', scopes: 'admin' })).out, /^svca_/, 'a token for administrators is known by its prefix');
  t.match((await create({ name: 'late', expires: '2026-01-02' })).notes, 'it expires at 2026-01-02T00:00:00.000Z.');
});

t.test('create refuses what the configuration does not know, and what makes no sense', async (t) => {
  const { create, records } = desk(t);
  await create();
  for (const [options, name, message] of [
    [{ project: 'acne' }, 'CommandError', 'there is no project "acne" in the configuration, did you mean "acme"?'],
    [
      { name: 'x', agents: 'billing,clark' },
      'CommandError',
      'there is no agent "clark" in the configuration, did you mean "clerk"?',
    ],
    [{}, 'CommandError', /^there is a token tok_0000000000000002 \("ci" of project acme\) already; revoke or rotate it/],
    [
      { project: 'default', name: 'ops' },
      'CommandError',
      /^there is a token "ops" of project default in the configuration already/,
    ],
    [
      { name: 'x', scopes: 'chat,modles:read' },
      'UsageError',
      '--scopes: there is no scope "modles:read", did you mean "models:read"?',
    ],
    [{ name: 'x', agents: 'billing,' }, 'UsageError', '--agents takes names with commas between them: a,b'],
    [
      { name: 'x', expires: 'soon' },
      'UsageError',
      '--expires takes a duration such as 90d, or a date such as 2027-01-31, not "soon"',
    ],
    [{ name: 'x', expires: '2026-99-01' }, 'UsageError', /^--expires takes a duration/],
    [{ name: 'x', expires: '99999999999d' }, 'UsageError', /^--expires takes a duration/],
    [{ name: 'x', expires: '2026-01-01' }, 'UsageError', '--expires: 2026-01-01 is not in the future'],
    [{ name: 'x', 'running-turns': '0' }, 'UsageError', '--running-turns takes a whole number from 1 on, not "0"'],
    [{ name: 'x'.repeat(65) }, 'UsageError', '--name takes 1 to 64 printable characters'],
    [{ name: 'a\nb' }, 'UsageError', '--name takes 1 to 64 printable characters'],
  ] as const) {
    await t.rejects(create(options as Record<string, string>), { name, message });
  }
  t.equal(records().length, 1, 'nothing of it was written');
  await create({ project: 'other' });
  t.equal(records().length, 2, 'another project may have a token of the same name');
});

t.test('list shows what there is and how it stands, without anything that could be tried', async (t) => {
  const { run, create, clock, path } = desk(t);
  const [first, second] = [(await create()).out, (await create({ name: 'short', project: 'other', expires: '1d' })).out];
  await run('revoke', {}, ['ci']);
  await writeAtomically(usesFile(path), '{"tok_0000000000000002":"2026-01-01T00:00:30.000Z"}');
  clock.advance(DAY);
  const { out } = await run('list');
  t.equal(
    out,
    [
      'ID                    PROJECT  NAME   TOKEN                 STATUS   EXPIRES           LAST USED',
      `cfg_${digestOf(CONFIGURED.token).slice(0, 12)}      default  ops    in the configuration  active   2027-01-31 00:00  never`,
      `tok_0000000000000002  acme     ci     ${first.slice(0, 9)}…${first.slice(-4)}        revoked  never             2026-01-01 00:00`,
      `tok_0000000000000004  other    short  ${second.slice(0, 9)}…${second.slice(-4)}        expired  2026-01-02 00:00  never`,
    ].join('\n'),
  );
  const { tokens } = JSON.parse((await run('list', { json: '', project: 'acme' })).out);
  t.match(tokens, [{ id: 'tok_0000000000000002', status: 'revoked', source: 'file', lastUsedAt: '2026-01-01T00:00:30.000Z' }]);
  const all = (await run('list', { json: '' })).out;
  for (const secret of [first, second, CONFIGURED.token, digestOf(first), digestOf(CONFIGURED.token)])
    t.notMatch(all + out, secret);
  t.match((await run('list', { project: 'nobody' })).out, /^There are no tokens/);
});

t.test('revoke takes an id, or the name of an active token, and can be repeated', async (t) => {
  const { run, create, records, clock } = desk(t);
  await create();
  await create({ project: 'other' });
  await t.rejects(run('revoke', {}, ['ci']), {
    name: 'CommandError',
    message:
      /^there are several tokens "ci": tok_0000000000000002 \(svcp_.*, project acme, since .*\), tok_0000000000000004 .*; say which, by its id$/,
  });
  t.equal(
    (await run('revoke', { project: 'other' }, ['ci'])).out,
    'token tok_0000000000000004 ("ci" of project other) is revoked since 2026-01-01T00:00:00.000Z. A running server refuses it within 10 seconds.',
  );
  await run('revoke', {}, ['ci']);
  t.match(records(), [{ revokedAt: '2026-01-01T00:00:00.000Z', revokedBy: /./ }, { revokedAt: /./ }]);
  await t.rejects(run('revoke', {}, ['ci']), { message: /^there is no active token "ci"/ });
  clock.advance(DAY);
  t.match((await run('revoke', {}, ['tok_0000000000000002'])).out, 'is revoked since 2026-01-01T00:00:00.000Z', 'the time stays');
});

t.test('rotate makes a token of the same rights, and the old one ends after the time of grace', async (t) => {
  const { run, create, records, clock } = desk(t);
  await create({ scopes: 'chat', agents: 'billing', expires: '30d', 'running-turns': '2' });
  clock.advance(10 * DAY);
  const { out, notes } = await run('rotate', { grace: '2h' }, ['ci']);
  t.match(notes, 'The old one, tok_0000000000000002, is taken for 2h more at most.');
  const [old, heir] = records();
  t.match(old, { id: 'tok_0000000000000002', expiresAt: '2026-01-11T02:00:00.000Z' });
  t.match(heir, {
    id: 'tok_0000000000000004',
    project: 'acme',
    name: 'ci',
    sha256: digestOf(out),
    scopes: ['chat'],
    agents: ['billing'],
    runningTurns: 2,
    createdAt: '2026-01-11T00:00:00.000Z',
    expiresAt: '2026-02-10T00:00:00.000Z',
    replaces: 'tok_0000000000000002',
  });
  await t.rejects(run('rotate', {}, ['tok_0000000000000002']), {
    message: /was rotated already; rotate its successor, tok_0000000000000004$/,
  });
  clock.advance(DAY);
  await t.rejects(run('rotate', {}, ['tok_0000000000000002']), { message: /is expired; create a new one$/ });
});

t.test('rotate gives a day of grace where nothing is said, but no longer life than the old one had', async (t) => {
  const { run, create, records, clock } = desk(t);
  await create();
  const json = JSON.parse((await run('rotate', { json: '' }, ['ci'])).out);
  t.match(json, { token: /^svcp_/, replaces: 'tok_0000000000000002' });
  t.notOk('expiresAt' in json);
  t.match(records()[0], { expiresAt: '2026-01-02T00:00:00.000Z' });
  await create({ name: 'brief', expires: '1h' });
  clock.advance(60_000);
  await run('rotate', { expires: '5h' }, ['brief']);
  t.match(records().slice(2), [{ expiresAt: '2026-01-01T01:00:00.000Z' }, { expiresAt: '2026-01-01T05:01:00.000Z' }]);
  await t.rejects(run('rotate', { grace: 'a while' }, ['brief']), {
    name: 'UsageError',
    message: /^--grace: "a while" is no duration/,
  });
});

t.test('hash prints what stands in the configuration as sha256', async (t) => {
  const { run } = desk(t);
  t.equal((await run('hash', {}, [], ['a-secret', '-of-mine\n'])).out, digestOf('a-secret-of-mine'));
  t.equal((await run('hash', {}, [], [TOKEN])).out, digestOf(TOKEN));
  for (const [input, message] of [
    ['', /^the secret is blank/],
    ['short\n', /^a token has at least 16/],
    ['x'.repeat(5000), 'what stands on standard input is too long for a token'],
    ['ein-geheimnis-mit-ü\n', /ASCII/],
  ] as const) {
    await t.rejects(run('hash', {}, [], [input]), { name: 'CommandError', message });
  }
});

t.test('a file that cannot be used is told of, and left as it is', async (t) => {
  const { run, path } = desk(t);
  await writeAtomically(path, '{');
  for (const action of ['create', 'list', 'revoke', 'rotate']) {
    await t.rejects(run(action, { project: 'acme', name: 'ci' }, ['ci']), {
      name: 'CommandError',
      message: /is damaged: it is no JSON/,
    });
  }
  t.equal(readFileSync(path, 'utf8'), '{');
});
