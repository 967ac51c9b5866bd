import {
  AgentRuntimes,
  compose,
  type DefinedPlugin,
  type Message,
  type Principal,
  type Server,
  type Tool,
  ToolSources,
} from '@plugboard/kernel';
import { Account, DEFAULT_PROJECT, OPEN, SCOPES, textOf } from '@plugboard/kernel/contracts';
import type { Attempt, Caller, Recording, TurnLine } from '../format/recording.js';
import { type Change, changesIn } from './compare.js';
import { endedFromOutside } from './outside.js';
import { Playback } from './playback.js';
import { ReplayClock, ReplayIds } from './replay-clock.js';
import { playing, replayerPlugin } from './replayer.js';
import { standIn } from './stand-in-tools.js';

/** Plugins that only watch a server: no replay is measured, traced or charged. */
const WATCHING: readonly (string | undefined)[] = ['metrics', 'tracing', 'usage'].map((name) => `@plugboard/plugin-${name}`);

const RECORD = '@plugboard/plugin-record';

/** What no replay needs: nothing listens, and callers are those of the recordings. */
const OMITTED = ['transports', 'auth', 'responses'];

/** What a replayed turn came to. */
export interface Replayed {
  readonly changes: readonly Change[];
  /** At model connections. None if the turn did not run. */
  readonly attempts: readonly Attempt[];
}

/** The agents of a configuration, in this process, with models and tools that play recordings. */
export class ReplayServer {
  readonly #server: Server;
  readonly #clock: ReplayClock;
  readonly #isLive: boolean;
  readonly #replayed: Map<string, Recording>;
  #turns = 0;

  private constructor(server: Server, clock: ReplayClock, isLive: boolean, replayed: Map<string, Recording>) {
    this.#server = server;
    this.#clock = clock;
    this.#isLive = isLive;
    this.#replayed = replayed;
  }

  /**
   * @param isLive whether the models of the configuration answer.
   * @throws ConfigError with all mistakes in the file.
   */
  static async open(file: string, isLive: boolean): Promise<ReplayServer> {
    const clock = new ReplayClock();
    const common = { file, clock, ids: new ReplayIds(), omit: OMITTED, logTo: { write: () => {} } };
    let agents: unknown;
    const readAgents = (found: unknown) => {
      agents = found;
      return found;
    };
    // Registered to know its tools, and never started.
    const plan = await compose({ ...common, replace: { sessions: SESSIONS, agents: readAgents } });
    const tools = await standIns(plan, agents);
    const replayed = new Map<string, Recording>();
    const replayer = replayerPlugin((recording) => replayed.set(recording.turn.requestId, recording));
    const plugins = (found: unknown) => withReplayer(found, plan, replayer);
    const server = await compose({ ...common, replace: { sessions: SESSIONS, log: LOG, tools, plugins } });
    await server.start();
    return new ReplayServer(server, clock, isLive, replayed);
  }

  /** Runs a recorded turn again. */
  async replay(recording: Recording): Promise<Replayed> {
    const { turn, end } = recording;
    const principal = principalOf(turn.caller);
    const runtime = this.#server.extensions(AgentRuntimes).one();
    const found = runtime.resolve(turn.agent, principal);
    if (found.kind !== 'target' || found.target.name !== turn.agent) {
      const after = `the agent "${turn.agent}" is gone`;
      return { changes: [{ kind: 'status', step: 0, before: end.status, after }], attempts: [] };
    }
    const playback = new Playback(recording, this.#isLive, () => this.#clock.skip());
    const requestId = `replay_${++this.#turns}`;
    const account = new Account(this.#server.budgets.memory, principal);
    const leave = account.hold();
    let status = 'crashed';
    await playing
      .run(playback, async () => {
        const events = runtime.run({
          target: found.target,
          principal,
          account,
          requestId,
          ...requestOf(turn),
          signal: playback.signal,
        });
        for await (const batch of events) {
          const last = batch.at(-1);
          if (last?.type === 'failed') status = last.failure.code;
        }
      })
      .finally(leave);
    const replayed = this.#replayed.get(requestId);
    this.#replayed.delete(requestId);
    if (!replayed) return { changes: [{ kind: 'status', step: 0, before: end.status, after: status }], attempts: [] };
    const { missing, isCutShort, isIgnored } = playback;
    const isOpenEnded = this.#isLive && endedFromOutside(recording);
    return {
      changes: changesIn(recording, { recording: replayed, missing, isCutShort, isOpenEnded, isIgnored }),
      attempts: replayed.attempts.filter((one) => !isIgnored(one)),
    };
  }

  async close(): Promise<void> {
    await this.#server.stop();
  }
}

/** Each turn of a session has one of its own, which lives as long as the replay. */
const SESSIONS = { use: 'memory', ttl: '36500d' };
const LOG = { level: 'error' };

/** Asks what the recorded request asked. The recorded conversation comes later, in its place. */
function requestOf(turn: TurnLine) {
  const { request, metadata, user, transport, incremental, messages, inSession } = turn;
  const last = messages.findLast(({ role }) => role === 'user');
  const { maxToolCalls, clientTools, params, system } = request;
  const common = {
    messages: [...system, { role: 'user', content: (last && textOf(last.content)) || 'replay' } satisfies Message],
    clientTools,
    params,
    maxToolCalls,
    incremental,
    metadata,
    user,
    transport,
  };
  if (request.summarize) return { ...common, summarize: true as const };
  return inSession ? { ...common, session: { key: `replay:${turn.id}` } } : common;
}

function principalOf({ project, name, subject, isIdentified }: Caller): Principal {
  if (project === DEFAULT_PROJECT && name === undefined && subject === undefined && isIdentified) return OPEN;
  const identity = isIdentified ? { tokenId: 'replay' } : { claims: {} };
  return {
    project,
    scopes: SCOPES,
    ...identity,
    ...(name !== undefined && { token: name }),
    ...(subject !== undefined && { subject }),
  };
}

/**
 * The entries of `plugins` without those that only watch, and with the replayer in the place of
 * `record`.
 */
function withReplayer(found: unknown, plan: Server, replayer: DefinedPlugin): Readonly<Record<string, unknown>> {
  const pluginOf = new Map(plan.host.entries().map(({ entry, plugin }) => [entry, plugin]));
  const entries = Object.entries(isMap(found) ? found : {}).flatMap(([name, entry]): [string, unknown][] => {
    const plugin = pluginOf.get(`plugins.${name}`);
    if (plugin === RECORD) return [[name, { use: replayer }]];
    return WATCHING.includes(plugin) ? [] : [[name, entry]];
  });
  const has = entries.some(([name]) => pluginOf.get(`plugins.${name}`) === RECORD);
  return Object.fromEntries(has ? entries : [...entries, ['record', { use: replayer }]]);
}

/** An entry for each entry of `tools`, which declares its tools and runs none. */
async function standIns(plan: Server, agents: unknown): Promise<Readonly<Record<string, object>>> {
  const signal = AbortSignal.timeout(5000);
  const named = toolPatterns(agents);
  const entries = plan
    .extensions(ToolSources)
    .all()
    .map(async (source): Promise<[string, object]> => {
      const listed = await Promise.resolve()
        .then(() => source.value.tools(signal))
        .catch((): readonly Tool[] => []);
      const prefix = `${source.name}/`;
      const names = named.flatMap((one) => (one.startsWith(prefix) && !one.endsWith('*') ? [one.slice(prefix.length)] : []));
      return [source.name, { use: standIn(source, listed, [...new Set(names)]), ...source.shared }];
    });
  return Object.fromEntries(await Promise.all(entries));
}

/** What the agents of the file name under `tools`. */
function toolPatterns(agents: unknown): readonly string[] {
  const settings = isMap(agents) ? Object.values(agents) : [];
  return settings.flatMap((one) =>
    isMap(one) && Array.isArray(one.tools) ? one.tools.filter((tool) => typeof tool === 'string') : [],
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
