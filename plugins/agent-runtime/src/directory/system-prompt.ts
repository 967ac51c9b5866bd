import { readFileSync } from 'node:fs';
import type { AgentSettings } from '../config.js';

/** The path of the prompt, where it stands in a file of its own. */
export function promptFile(agent: AgentSettings): string | undefined {
  return typeof agent.system === 'object' ? agent.system.file : undefined;
}

/** What the model is told before the conversation; undefined where the agent has no prompt. */
export function readPrompt(agent: AgentSettings, resolvePath: (path: string) => string): string | undefined {
  if (typeof agent.system !== 'object') return agent.system;
  return readFileSync(resolvePath(agent.system.file), 'utf8').trimEnd();
}
