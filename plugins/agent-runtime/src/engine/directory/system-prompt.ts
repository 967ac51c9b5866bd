import { readFileSync } from 'node:fs';
import type { AgentSettings } from '../../config.js';

/** The path of the prompt file, if the prompt is in a file. */
export function promptFile(agent: AgentSettings): string | undefined {
  return typeof agent.system === 'object' ? agent.system.file : undefined;
}

/** Reads the system prompt. Undefined if the agent has none. */
export function readPrompt(agent: AgentSettings, resolvePath: (path: string) => string): string | undefined {
  if (typeof agent.system !== 'object') return agent.system;
  return readFileSync(resolvePath(agent.system.file), 'utf8').trimEnd();
}
