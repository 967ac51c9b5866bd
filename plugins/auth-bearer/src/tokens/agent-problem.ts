import type { CheckContext } from '@plugboard/kernel';
import { DEFAULT_PROJECT, suggestion } from '@plugboard/kernel/contracts';

/**
 * Returns why a token of the project cannot be used for an agent, or undefined if it can.
 *
 * @param entries the keys of a section of the file.
 */
export function agentProblem(agent: string, project: string, entries: CheckContext['entries']): string | undefined {
  const all = entries('agents');
  if (!all.includes(agent)) return `no agent "${agent}"${suggestion(agent, all)}`;
  const unset = project === DEFAULT_PROJECT ? entries('agents', { project: undefined }) : [];
  if ([...entries('agents', { project }), ...unset].includes(agent)) return undefined;
  return `no agent "${agent}" in the project ${project}: the agent belongs to another project`;
}
