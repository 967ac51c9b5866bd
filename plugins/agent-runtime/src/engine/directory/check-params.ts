import type { ConfigProblem, Extensions, ModelConnector } from '@plugboard/kernel';
import type { RuntimeSettings } from '../../config.js';
import { modelNames } from './check-config.js';

/**
 * Finds parameters of agents that none of their model connections supports and that would be
 * ignored silently. Skips an agent if one of its connections is disabled: that connection may
 * support them.
 */
export function checkParams(agents: RuntimeSettings['agents'], models: Extensions<ModelConnector>): ConfigProblem[] {
  return Object.entries(agents).flatMap(([name, agent]) => {
    const names = modelNames(agent);
    const connectors = names.map((model) => models.get(model));
    if (connectors.includes(undefined)) return [];
    const ignored = Object.keys(agent.params).filter((param) => !connectors.some((model) => model?.supportsParam(param)));
    return ignored.map((param) => ({
      path: ['agents', name, 'params', param],
      message: `has no effect: ${taker(names)} this parameter; remove it, or set it in the options of the model`,
    }));
  });
}

/**
 * `"fast" does not support`, `neither "fast" nor "local" supports`,
 * `none of "a", "b", "c" supports`
 */
function taker(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`);
  if (quoted.length === 1) return `${quoted[0]} does not support`;
  return quoted.length === 2 ? `neither ${quoted[0]} nor ${quoted[1]} supports` : `none of ${quoted.join(', ')} supports`;
}
