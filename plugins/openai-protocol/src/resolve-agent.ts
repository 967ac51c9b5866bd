import type { AgentRuntime, Principal, Target } from '@plugboard/kernel';
import { serviceError } from './errors.js';
import { stringTooLong } from './request-errors.js';

const MAX_BYTES = 256;

/** @throws ProtocolError 400 for a text that is too long to name an agent. */
export function checkAgentName(name: string, param: string): void {
  const bytes = Buffer.byteLength(name);
  if (bytes > MAX_BYTES) throw stringTooLong(param, MAX_BYTES, bytes, 'bytes');
}

/**
 * What is to answer, by the name that a request gives it. The texts are constant: they tell nothing of what exists but what the status does.
 *
 * @param param the field that holds the name.
 * @throws ProtocolError 403 for an agent that is out of the caller's reach, 400 where there is none.
 */
export function resolveAgent(runtime: AgentRuntime, name: string, param: string, principal: Principal): Target {
  const resolution = runtime.resolve(name, principal);
  switch (resolution.kind) {
    case 'target':
      return resolution.target;
    case 'forbidden':
      throw serviceError(403, `The agent that \`${param}\` names is outside the scope of this API token.`);
    case 'unknown':
      throw serviceError(400, `No agent and no model goes by the name in \`${param}\`, and there is no default agent.`);
  }
}
