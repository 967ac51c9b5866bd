import type { Clock, Logger, ToolInterceptor } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import type { StarterConfig } from './config.ts';

/** Refuses tool calls with effects to read-only agents, and logs the time of all others. */
export function starterToolInterceptor({ readOnly }: StarterConfig, clock: Clock, log: Logger): ToolInterceptor {
  return async (call, next) => {
    const tool = `${call.entry}/${call.tool}`;
    if (call.effect !== 'read' && readOnly.includes(call.agent)) {
      throw new TurnError('invalid_request', `The agent ${call.agent} may not call ${tool}: it only reads.`);
    }
    const begun = clock.monotonic();
    const output = await next(call);
    const duration_ms = Math.round(clock.monotonic() - begun);
    log.info({ tool, agent: call.agent, token_id: call.principal.tokenId, duration_ms }, 'tool call');
    return output;
  };
}
