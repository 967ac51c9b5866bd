import { readdir } from 'node:fs/promises';
import { type CommandAction, type CommandTerminal, suggestion, UsageError } from '@plugboard/kernel/contracts';
import { isRecordingName } from '../format/file-name.js';
import { PriceList } from '../replay/price-list.js';
import { configFile, EXIT_WRONG_FILE, openConfiguration } from './open-configuration.js';
import { changeLines } from './print-changes.js';
import { Rehearsal } from './rehearsal.js';

/** Turns that are rehearsed by default. */
const LAST = 1000;

/**
 * `plugboard rehearse`: runs the newest recorded turns again.
 *
 * @param recordings the folder that the configuration names.
 */
export function rehearseCommand(recordings: string): CommandAction {
  return {
    summary: 'Runs the newest recorded turns again, and counts what changed',
    options: {
      against: { value: 'OTHER', description: 'another configuration file, to compare with' },
      last: { value: 'NUMBER', description: `how many turns, the newest first; by default ${LAST}` },
      agent: { value: 'NAME', description: 'only turns of this agent' },
      from: { value: 'DIR', description: 'the folder of the recordings; by default that of the configuration' },
      live: { description: 'let the models answer, which costs money; tools do not run' },
      json: { description: 'print JSON' },
    },
    async run(args, terminal) {
      const last = countOf(args.text('last'));
      const folder = args.text('from') ?? recordings;
      const names = await namesIn(folder, terminal);
      if (!names) return EXIT_WRONG_FILE;
      const isLive = args.has('live');
      const server = await openConfiguration(args, terminal, isLive);
      if (!server) return EXIT_WRONG_FILE;
      const before = await PriceList.open(configFile(args));
      const after = await PriceList.open(args.text('against') ?? configFile(args));
      const rehearsal = new Rehearsal({
        folder,
        names,
        last,
        agent: args.text('agent'),
        isLive,
        replay: (recording) => server.replay(recording),
        onReplayed: async (recorded, replayed) => {
          await before?.add(recorded.attempts);
          // A replay begins after the summary of earlier turns, which costs what it did.
          const summaries = recorded.attempts.filter(({ step }) => step === 0);
          await after?.add([...summaries, ...replayed]);
        },
        onFailed: ({ file, reason }) => terminal.note(`plugboard: ${file} ${reason}`),
      });
      try {
        await rehearsal.run();
      } finally {
        await Promise.all([server.close(), before?.close(), after?.close()]);
      }
      const { refused } = rehearsal;
      if (refused > 0) {
        const were = refused === 1 ? 'turn was' : 'turns were';
        terminal.note(
          `plugboard: ${refused} ${were} left out: a budget refused ${refused === 1 ? 'it' : 'them'} before a model answered`,
        );
      }
      if (rehearsal.turns === 0) {
        terminal.note(`plugboard: ${folder} ${nothingFor(args.text('agent'), rehearsal)}`);
        return EXIT_WRONG_FILE;
      }
      const cost = costOf(before, after);
      terminal.print(args.has('json') ? JSON.stringify(resultOf(rehearsal, cost)) : linesOf(rehearsal, cost).join('\n'));
      // As diff does: 1 says that everything was compared.
      if (rehearsal.failed.length > 0) return EXIT_WRONG_FILE;
      return rehearsal.changed.length > 0 ? 1 : 0;
    },
  };
}

/** A clause about a folder without a turn to rehearse. */
function nothingFor(agent: string | undefined, { agents }: Rehearsal): string {
  if (agent === undefined) return 'has no turn to rehearse';
  return `has no turn of the agent "${agent}" to rehearse${agents.has(agent) ? '' : suggestion(agent, [...agents])}`;
}

/** What the turns cost; null if the configurations have no prices for them. */
interface Cost {
  readonly currency: string;
  /** Decimal text. Null without prices. */
  readonly before: string | null;
  readonly after: string | null;
}

function costOf(before: PriceList | undefined, after: PriceList | undefined): Cost | null {
  const currency = before?.currency ?? after?.currency;
  return currency === undefined ? null : { currency, before: before?.total ?? null, after: after?.total ?? null };
}

function resultOf({ turns, same, changed, failed, kinds }: Rehearsal, cost: Cost | null) {
  return { turns, same, changed: changed.length, failed: failed.length, kinds, cost, changes: changed, failures: failed };
}

function linesOf({ turns, same, changed, failed, kinds }: Rehearsal, cost: Cost | null): readonly string[] {
  const counts = Object.entries(kinds).map(([kind, count]) => `${kind} ${count}`);
  const listed = counts.length > 0 ? ` (${counts.join(', ')})` : '';
  return [
    ...changed.flatMap(({ file, turn, agent, changes }) => [`${file}: ${turn} of ${agent}`, ...changeLines(changes)]),
    `${turns} ${turns === 1 ? 'turn' : 'turns'}: ${same} same, ${changed.length} changed${listed}, ${failed.length} failed`,
    ...(cost ? [`cost: ${cost.before ?? 'unknown'} before, ${cost.after ?? 'unknown'} after (${cost.currency})`] : []),
  ];
}

/** @throws UsageError */
function countOf(text: string | undefined): number {
  if (text === undefined) return LAST;
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new UsageError(`--last needs a whole number of at least 1, not "${text}"`);
  return count;
}

/** The names of the recordings, the newest first. Undefined without any, which is printed then. */
async function namesIn(folder: string, terminal: CommandTerminal): Promise<readonly string[] | undefined> {
  try {
    const names = (await readdir(folder)).filter(isRecordingName).sort().reverse();
    if (names.length > 0) return names;
    terminal.note(`plugboard: ${folder} has no recordings`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === 'ENOENT' ? 'does not exist; name the folder of the recordings with --from' : `cannot be read: ${message}`;
    terminal.note(`plugboard: ${folder} ${why}`);
  }
  return undefined;
}
