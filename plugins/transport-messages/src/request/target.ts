import type { Principal } from '@plugboard/kernel';
import type { AgentRuntime, Target } from '@plugboard/kernel/contracts';
import { MessagesError } from '../errors/messages-error.js';

/**
 * Resolves the agent or model named in a request. The messages are constant, so that they reveal no
 * more than the status.
 *
 * @throws MessagesError 403 for an agent out of scope, 404 if nothing matches.
 */
export function targetOf(runtime: AgentRuntime, model: string, principal: Principal): Target {
  const resolution = runtime.resolve(model, principal);
  switch (resolution.kind) {
    case 'target':
      return resolution.target;
    case 'forbidden':
      throw new MessagesError(
        403,
        'permission_error',
        'model: This API token may not use the agent: it is of another project, or the token is for other agents. ' +
          'GET /v1/models lists what it may use',
      );
    case 'unknown':
      throw new MessagesError(404, 'not_found_error', 'model: No agent or model has this name, and there is no default agent');
  }
}
