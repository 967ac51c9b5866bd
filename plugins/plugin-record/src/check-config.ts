import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import { suggestion } from '@plugboard/kernel/contracts';
import type { RecordConfig } from './config.js';

/** Finds agents that do not exist. */
export function checkConfig({ agents = [] }: RecordConfig, check: CheckContext): readonly ConfigProblem[] {
  const known = [...check.entries('agents'), ...check.entries('models')];
  return agents.flatMap((name, index) =>
    known.includes(name) ? [] : [{ path: ['agents', index], message: `no agent or model "${name}"${suggestion(name, known)}` }],
  );
}
