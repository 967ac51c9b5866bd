import type { Principal } from '@plugboard/kernel';
import type { AgentRuntime, Target } from '@plugboard/kernel/contracts';
import { serviceError } from '../errors/errors.js';
import { stringTooLong } from '../errors/request-errors.js';

const MAX_BYTES = 256;

/** @throws ProtocolError 400 if the name is too long for an agent. */
export function checkAgentName(name: string, param: string): void {
  const bytes = Buffer.byteLength(name);
  if (bytes > MAX_BYTES) throw stringTooLong(param, MAX_BYTES, bytes, 'bytes');
}

/**
 * Resolves the agent or model named in a request. The messages are constant, so that they reveal no
 * more than the status.
 *
 * @param param the field with the name.
 * @throws ProtocolError 403 for an agent out of scope, 400 if nothing matches.
 */
export function resolveAgent(runtime: AgentRuntime, name: string, param: string, principal: Principal): Target {
  const resolution = runtime.resolve(name, principal);
  switch (resolution.kind) {
    case 'target':
      return resolution.target;
    case 'forbidden':
      throw serviceError(
        403,
        `This API token may not use the agent that \`${param}\` names: it is of another project, or the token is for other agents. ` +
          'GET /v1/models lists what it may use.',
      );
    case 'unknown':
      throw serviceError(400, `No agent or model has the name in \`${param}\`, and there is no default agent.`);
  }
}
