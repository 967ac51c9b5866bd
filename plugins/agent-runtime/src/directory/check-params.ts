import type { ConfigProblem, Extensions, ModelConnector } from '@plugboard/kernel';
import type { RuntimeSettings } from '../config.js';
import { modelNames } from './check-config.js';

/**
 * Finds parameters of agents that none of their model connections takes: they would be ignored without
 * a word. An agent is passed over while one of its connections is disabled: that one may take them.
 */
export function checkParams(agents: RuntimeSettings['agents'], models: Extensions<ModelConnector>): ConfigProblem[] {
  return Object.entries(agents).flatMap(([name, agent]) => {
    const names = modelNames(agent);
    const connectors = names.map((model) => models.get(model));
    if (connectors.includes(undefined)) return [];
    const ignored = Object.keys(agent.params).filter((param) => !connectors.some((model) => model?.supportsParam(param)));
    return ignored.map((param) => ({
      path: ['agents', name, 'params', param],
      message: `would be ignored, because ${taker(names)} this parameter; remove it, or set it in the options of the model`,
    }));
  });
}

/** `"fast" does not take`, `neither "fast" nor "local" takes`, `none of "a", "b", "c" takes` */
function taker(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`);
  if (quoted.length === 1) return `${quoted[0]} does not take`;
  return quoted.length === 2 ? `neither ${quoted[0]} nor ${quoted[1]} takes` : `none of ${quoted.join(', ')} takes`;
}
