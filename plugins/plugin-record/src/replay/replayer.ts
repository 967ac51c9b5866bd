import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Clock,
  type DefinedPlugin,
  definePlugin,
  Interceptors,
  ToolInterceptors,
  type ToolOutput,
  type Turn,
} from '@plugboard/kernel';
import { type AgentEvents, ModelInterceptors, NO_USAGE } from '@plugboard/kernel/contracts';
import type { Recording } from '../format/recording.js';
import { TurnRecorder } from '../record/turn-recorder.js';
import { injectedTurn } from './injected-turn.js';
import type { Playback } from './playback.js';

/** The turn that is replayed here. */
export const playing = new AsyncLocalStorage<Playback>();

/** The errors that tools are to throw, by the ids of the calls. */
export const toolErrors = new Map<string, Error>();

/**
 * The plugin in the place of `record` while turns are replayed: it gives the agent the recorded
 * conversation, answers for models and tools, and records what happens.
 *
 * @param onReplayed receives the recording of each replayed turn.
 */
export function replayerPlugin(onReplayed: (recording: Recording) => void): DefinedPlugin {
  return definePlugin({
    name: '@plugboard/plugin-record/replay',
    apiVersion: 1,
    summary: 'Replays recorded turns',
    configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const recorder = recorderOf(ctx.clock, onReplayed);
      ctx.contribute(Interceptors, (turn, next) => {
        const playback = playing.getStore();
        if (!playback) return next(turn);
        const { recording } = playback;
        return recorder.interceptor(injectedTurn(turn, recording), saysNothing(recording) ? silence : next);
      });
      ctx.contribute(ModelInterceptors, (call, next) =>
        recorder.modelInterceptor(call, (asked) => {
          const connections = recorder.turnOf({ turnId: call.turnId, requestId: '' })?.connections ?? [];
          return playing.getStore()?.answer(asked, connections, next) ?? next(asked);
        }),
      );
      ctx.contribute(ToolInterceptors, (call, next) =>
        recorder.toolInterceptor(call, async (asked): Promise<ToolOutput> => {
          const playback = playing.getStore();
          if (!playback) throw new Error('no recorded turn is replayed here');
          const made = recorder.turnOf(call)?.lineOf(call.id);
          return playback.tool(asked, made, async (error) => {
            toolErrors.set(call.id, error);
            return next(asked).finally(() => toolErrors.delete(call.id));
          });
        }),
      );
      return { start: () => recorder.start(), stop: () => recorder.stop() };
    },
  });
}

function recorderOf(clock: Clock, onReplayed: (recording: Recording) => void): TurnRecorder {
  return new TurnRecorder(clock, {
    wants: () => true,
    grow: () => true,
    done: (recording) => recording && onReplayed(recording),
  });
}

/**
 * Whether the turn only said which calls wait for a person. The conversation that they belong to is
 * not there.
 */
function saysNothing({ attempts, end, turn }: Recording): boolean {
  const asked = attempts.some(({ step }) => step > 0);
  return !asked && !turn.lead && end.status === 'stop' && end.limit === undefined && end.answer === '';
}

async function* silence({ id, agent }: Turn): AgentEvents {
  yield [
    { type: 'started', turnId: id, agent },
    { type: 'finished', reason: 'stop', usage: NO_USAGE },
  ];
}
