import { setTimeout as wait } from 'node:timers/promises';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../../support/rounds.js';
import { seeded } from '../../support/seeded.js';
import { Victim } from '../victim.js';
import { type Fate, MailServer } from './mail-server.js';
import { modelOf, Sender } from './sender.js';
import { ENTRIES, type Entry, FILES, POINTS } from './server-files.js';

/** Answers that are cut, and calls that are killed, at least. */
const CUTS = rounds({ short: 10, long: 150, soak: 10_000 });
const SESSIONS = rounds({ short: 6, long: 12, soak: 30 });
/** What a client does at most in one life of the server. */
const MOVES = 8;
const SEED = Number(process.env.PLUGBOARD_SEED ?? 47);
t.setTimeout(120_000 + CUTS * 500);

/** What becomes of most requests. One in a hundred takes the time of a tool. */
const FATES: readonly Fate[] = ['answer', 'answer', 'before', 'after', 'half'];
/** Where a server is killed: by itself, while mails are held, and while it starts. */
const ENDS = [...POINTS, 'held', 'start'] as const;

t.test(`TC-1 TC-3 TC-4 TC-5 no mail is doubled or lost by ${CUTS} cut answers and kills`, async (t) => {
  t.setTimeout(120_000 + CUTS * 500);
  t.comment(`PLUGBOARD_SEED=${SEED}`);
  const random = seeded(SEED);
  const upTo = (n: number) => Math.floor(random() * n);
  const mail = new MailServer();
  const MAIL_URL = await mail.start();
  t.teardown(() => mail.close());
  /** A model server for one life, as it keeps its requests. */
  const withModels = async (work: (env: Record<string, string>) => Promise<void>) => {
    const models = await ModelServer.start();
    models.respond(({ body }) => modelOf(body));
    try {
      await work({ MODEL_URL: models.url, MAIL_URL });
    } finally {
      await models.close();
    }
  };
  const folder = t.testdir(FILES);
  const senders = Array.from({ length: SESSIONS }, (_, n) => new Sender(`s${n}`, ENTRIES[n % ENTRIES.length] as Entry));

  const fate = (): Fate => (upTo(100) === 0 ? 'late' : (FATES[upTo(FATES.length)] ?? 'answer'));
  let killed = 0;
  /** One life of the server, to its end. */
  const live = async (end: (typeof ENDS)[number], env: Record<string, string>) => {
    mail.fate = fate;
    const victim = new Victim(t, folder, { ...env, DIE_AT: end, DIE_AFTER: String(upTo(SESSIONS * MOVES)) });
    if (end === 'start') {
      victim.launch();
      await wait(300 + upTo(900)); // wherever it is then
      return victim.kill();
    }
    const url = await victim.start();
    if (end === 'held') {
      let left = upTo(SESSIONS * MOVES);
      mail.fate = () => (left-- > 0 ? fate() : upTo(2) === 0 ? 'held before' : 'held after');
      mail.holds(SESSIONS).then(() => victim.kill());
    }
    const isCut = await Promise.all(
      senders.map(async (sender) => {
        for (let move = 0; end === 'held' || move < MOVES; move++) if ((await sender.play(url)) === 'cut') return true;
        return false;
      }),
    );
    killed += isCut.filter((one) => one).length;
    return victim.kill();
  };
  let lives = 0;
  for (; mail.cut + killed < CUTS; lives++) await withModels((env) => live(ENDS[(lives * 7 + 7) % ENDS.length] ?? 'held', env));

  mail.fate = () => 'answer';
  await withModels(async (env) => {
    const victim = new Victim(t, folder, env);
    const url = await victim.start();
    await Promise.all(
      senders.map(async (sender) => {
        while ((await sender.play(url, false)) !== 'settled');
      }),
    );
    t.equal(await victim.stop(), 0);
  });

  const verdict = { doubled: [] as string[], lost: [] as string[], wrong: senders.flatMap(({ wrong }) => wrong) };
  const counts = Object.fromEntries(ENTRIES.map((entry) => [entry, { mails: 0, unknown: 0, unknownAndSent: 0 }]));
  for (const { told, entry } of senders) {
    const count = counts[entry] as { mails: number; unknown: number; unknownAndSent: number };
    for (const [subject, text] of told) {
      const sent = mail.sent.get(subject) ?? 0;
      count.mails += 1;
      if (sent > 1) verdict.doubled.push(`${subject} (${entry})`);
      if (/whether (?:it|the call) took effect is unknown/i.test(text)) {
        count.unknown += 1;
        count.unknownAndSent += sent;
      } else if (text !== 'sent') verdict.wrong.push(`${subject}: ${text}`);
      else if (sent === 0) verdict.lost.push(`${subject} (${entry})`);
    }
  }
  const known = new Set(senders.flatMap(({ told }) => [...told.keys()]));
  verdict.lost.push(...[...mail.sent.keys()].filter((subject) => !known.has(subject)));
  const { doubled, lost } = verdict;
  t.comment(JSON.stringify({ seed: SEED, lives, cut: mail.cut, killed, ...counts, doubled: doubled.length, lost: lost.length }));
  t.strictSame({ ...verdict, mixed: mail.mixed }, { doubled: [], lost: [], wrong: [], mixed: [] });
  t.ok(ENTRIES.every((entry) => (counts[entry]?.mails ?? 0) > 0));
});
