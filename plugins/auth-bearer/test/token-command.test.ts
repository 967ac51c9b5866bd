import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandArguments, type CommandFamily, Commands } from '@plugboard/kernel/contracts';
import { ManualClock, SequentialIds, testContext } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { writeAtomically } from '../src/files/atomic-write.js';
import { lastUseFile } from '../src/files/last-use.js';
import plugin from '../src/index.js';
import { digestOf } from '../src/tokens/digest.js';
import type { TokenRecord } from '../src/tokens/token-record.js';
import { TOKEN } from './token-fixtures.js';

const DAY = 86_400_000;
const CONFIGURED = { name: 'ops', project: 'default', token: 'hand-written-secret', expires: '2027-01-31' };

/** The file, whose agents have these projects; undefined is the default one. */
const AGENTS: Readonly<Record<string, string | undefined>> = { billing: 'acme', clerk: 'acme', mine: undefined, ours: 'default' };

function entries(section: string, where?: { readonly project?: unknown }): readonly string[] {
  if (section === 'projects') return ['acme', 'other'];
  return Object.keys(AGENTS).filter((agent) => where === undefined || AGENTS[agent] === where.project);
}

/** Runs `plugboard token …` in an empty folder. */
function tokenCommand(t: Test) {
  const folder = t.testdir({});
  const clock = new ManualClock();
  const ctx = testContext(plugin, {
    config: { tokensFile: 'data/tokens.json', tokens: [CONFIGURED] },
    folder,
    clock,
    ids: new SequentialIds(),
    check: { entries },
  });
  const family = ctx.contributed(Commands, 'token') as CommandFamily;
  const path = join(folder, 'data/tokens.json');

  /** Runs an action. A switch is an option with an empty text. */
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

t.test('create prints the token alone on standard output and notes beside it', async (t) => {
  const { create, records, path } = tokenCommand(t);
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
      'This is token tok_0000000000000002 ("ci" of project acme). It is shown only once: store it safely.',
      'Scopes: chat, models:read. Agents: billing. Expires: 2026-04-01T00:00:00.000Z.',
      'A running server with this provider accepts it within 10 seconds.',
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
  t.notMatch(readFileSync(path, 'utf8'), out, 'the token itself is not stored');
  t.equal(statSync(path).mode & 0o777, 0o600);
});

t.test('create has defaults and prints JSON', async (t) => {
  const { create } = tokenCommand(t);
  const { out, notes } = await create({ json: '' });
  const shown = JSON.parse(out);
  t.match(shown, { token: /^svcp_/, id: /^tok_/, scopes: ['chat', 'models:read', 'sessions:read', 'sessions:write'] });
  t.notOk('sha256' in shown || 'expiresAt' in shown || 'agents' in shown);
  t.equal(notes, '');
  t.match((await create({ name: 'boss', scopes: 'admin' })).out, /^svca_/, 'an admin token has another prefix');
  t.match((await create({ name: 'late', expires: '2026-01-02' })).notes, 'Expires: 2026-01-02T00:00:00.000Z.');
});

t.test('create refuses unknown projects and agents, duplicates and invalid options', async (t) => {
  const { create, records } = tokenCommand(t);
  await create();
  for (const [options, name, message] of [
    [{ project: 'acne' }, 'CommandError', 'the configuration has no project "acne", did you mean "acme"?'],
    [{ name: 'x', agents: 'billing,clark' }, 'CommandError', 'the configuration has no agent "clark", did you mean "clerk"?'],
    [
      { name: 'x', project: 'other', agents: 'billing' },
      'CommandError',
      'the configuration has no agent "billing" in the project other: the agent belongs to another project',
    ],
    [{ name: 'x', project: 'default', agents: 'mine,clerk' }, 'CommandError', /no agent "clerk" in the project default/],
    [{ name: 'x', agents: 'mine' }, 'CommandError', /no agent "mine" in the project acme/],
    [{}, 'CommandError', /^token tok_0000000000000002 \("ci" of project acme\) already exists; revoke or rotate it/],
    [{ project: 'default', name: 'ops' }, 'CommandError', /^the configuration already has a token "ops" of project default/],
    [
      { name: 'x', scopes: 'chat,modles:read' },
      'UsageError',
      '--scopes: unknown scope "modles:read", did you mean "models:read"?',
    ],
    [{ name: 'x', agents: 'billing,' }, 'UsageError', '--agents must be a comma-separated list such as a,b'],
    [
      { name: 'x', expires: 'soon' },
      'UsageError',
      '--expires must be a duration such as 90d or a date such as 2027-01-31, not "soon"',
    ],
    [{ name: 'x', expires: '2026-99-01' }, 'UsageError', /^--expires must be a duration/],
    [{ name: 'x', expires: '2026-02-30' }, 'UsageError', /^--expires must be a duration .*, not "2026-02-30"$/],
    [{ name: 'x', expires: '2027-01-31x' }, 'UsageError', /^--expires must be a duration/],
    [{ name: 'x', expires: '99999999999d' }, 'UsageError', /^--expires must be a duration/],
    [{ name: 'x', expires: '2026-01-01' }, 'UsageError', '--expires: 2026-01-01 is not in the future'],
    [{ name: 'x', 'running-turns': '0' }, 'UsageError', '--running-turns must be a positive integer, not "0"'],
    [{ name: 'x'.repeat(65) }, 'UsageError', '--name must have 1 to 64 printable characters'],
    [{ name: 'a\nb' }, 'UsageError', '--name must have 1 to 64 printable characters'],
  ] as const) {
    await t.rejects(create(options as Record<string, string>), { name, message });
  }
  t.equal(records().length, 1, 'nothing was written');
  await create({ name: 'own', project: 'default', agents: 'mine,ours' });
  await create({ project: 'other' });
  t.equal(records().length, 3, 'another project may have a token of the same name');
});

t.test('list shows tokens and their status without secrets', async (t) => {
  const { run, create, clock, path } = tokenCommand(t);
  const [first, second] = [(await create()).out, (await create({ name: 'short', project: 'other', expires: '1d' })).out];
  await run('revoke', {}, ['ci']);
  await writeAtomically(lastUseFile(path), '{"tok_0000000000000002":"2026-01-01T00:00:30.000Z"}');
  clock.advance(DAY);
  const { out } = await run('list');
  t.equal(
    out,
    [
      'ID                    PROJECT  NAME   TOKEN            STATUS   EXPIRES           LAST USED',
      `cfg_${digestOf(CONFIGURED.token).slice(0, 12)}      default  ops    (configuration)  active   2027-01-31 00:00  never`,
      `tok_0000000000000002  acme     ci     ${first.slice(0, 9)}…${first.slice(-4)}   revoked  never             2026-01-01 00:00`,
      `tok_0000000000000004  other    short  ${second.slice(0, 9)}…${second.slice(-4)}   expired  2026-01-02 00:00  never`,
    ].join('\n'),
  );
  const { tokens } = JSON.parse((await run('list', { json: '', project: 'acme' })).out);
  t.match(tokens, [{ id: 'tok_0000000000000002', status: 'revoked', source: 'file', lastUsedAt: '2026-01-01T00:00:30.000Z' }]);
  const all = (await run('list', { json: '' })).out;
  for (const secret of [first, second, CONFIGURED.token, digestOf(first), digestOf(CONFIGURED.token)])
    t.notMatch(all + out, secret);
  t.match((await run('list', { project: 'unknown' })).out, /^There are no tokens/);
});

t.test('revoke accepts an id or the name of an active token, and can be repeated', async (t) => {
  const { run, create, records, clock } = tokenCommand(t);
  await create();
  await create({ project: 'other' });
  await t.rejects(run('revoke', {}, ['ci']), {
    name: 'CommandError',
    message:
      /^several active tokens are named "ci": tok_0000000000000002 \(svcp_.*, project acme, created .*\), tok_0000000000000004 .*\. Use the id$/,
  });
  t.equal(
    (await run('revoke', { project: 'other' }, ['ci'])).out,
    'token tok_0000000000000004 ("ci" of project other) was revoked at 2026-01-01T00:00:00.000Z. A running server refuses it within 10 seconds.',
  );
  await run('revoke', {}, ['ci']);
  t.match(records(), [{ revokedAt: '2026-01-01T00:00:00.000Z', revokedBy: /./ }, { revokedAt: /./ }]);
  await t.rejects(run('revoke', {}, ['ci']), { message: /^there is no active token "ci"/ });
  clock.advance(DAY);
  t.match((await run('revoke', {}, ['tok_0000000000000002'])).out, 'was revoked at 2026-01-01T00:00:00.000Z', 'the time is kept');
});

t.test('rotate creates a token with the same rights; the old one expires after the grace period', async (t) => {
  const { run, create, records, clock } = tokenCommand(t);
  await create({ scopes: 'chat', agents: 'billing', expires: '30d', 'running-turns': '2' });
  clock.advance(10 * DAY);
  const { out, notes } = await run('rotate', { grace: '2h' }, ['ci']);
  t.match(notes, 'The old token tok_0000000000000002 stays valid for at most 2h.');
  const [old, successor] = records();
  t.match(old, { id: 'tok_0000000000000002', expiresAt: '2026-01-11T02:00:00.000Z' });
  t.match(successor, {
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
    message: /was already rotated; rotate its successor tok_0000000000000004$/,
  });
  clock.advance(DAY);
  await t.rejects(run('rotate', {}, ['tok_0000000000000002']), { message: /is expired; create a new one$/ });
});

t.test('rotate grants a day of grace by default, but never extends the old token', async (t) => {
  const { run, create, records, clock } = tokenCommand(t);
  await create();
  const json = JSON.parse((await run('rotate', { json: '' }, ['ci'])).out);
  t.match(json, { token: /^svcp_/, replaces: 'tok_0000000000000002' });
  t.notOk('expiresAt' in json);
  t.match(records()[0], { expiresAt: '2026-01-02T00:00:00.000Z' });
  await create({ name: 'brief', expires: '1h' });
  clock.advance(60_000);
  await run('rotate', { expires: '5h' }, ['brief']);
  t.match(records().slice(2), [{ expiresAt: '2026-01-01T01:00:00.000Z' }, { expiresAt: '2026-01-01T05:01:00.000Z' }]);
  await t.rejects(run('rotate', { grace: '99999999999d' }, ['brief']), {
    name: 'UsageError',
    message: '--grace: 99999999999d is too long; use at most 10000d',
  });
  await t.rejects(run('rotate', { grace: 'a while' }, ['brief']), {
    name: 'UsageError',
    message: /^--grace: "a while" is not a duration/,
  });
});

t.test('hash prints the SHA-256 for the configuration', async (t) => {
  const { run } = tokenCommand(t);
  t.equal((await run('hash', {}, [], ['a-secret', '-of-mine\n'])).out, digestOf('a-secret-of-mine'));
  t.equal((await run('hash', {}, [], [TOKEN])).out, digestOf(TOKEN));
  for (const [input, message] of [
    ['', /^the secret is blank/],
    ['short\n', /^a token needs at least 16/],
    ['x'.repeat(5000), 'the input is too long for a token'],
    ['ein-geheimnis-mit-ü\n', /ASCII/],
  ] as const) {
    await t.rejects(run('hash', {}, [], [input]), { name: 'CommandError', message });
  }
});

t.test('reports an unusable file and does not change it', async (t) => {
  const { run, path } = tokenCommand(t);
  await writeAtomically(path, '{');
  for (const action of ['create', 'list', 'revoke', 'rotate']) {
    await t.rejects(run(action, { project: 'acme', name: 'ci' }, ['ci']), {
      name: 'CommandError',
      message: /is damaged: it is not JSON/,
    });
  }
  t.equal(readFileSync(path, 'utf8'), '{');
});
