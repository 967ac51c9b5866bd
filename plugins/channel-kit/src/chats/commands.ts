import { NOTICES } from '../base/notices.js';
import type { ChatSettings } from '../state/records.js';
import type { ChannelAgents } from './agents.js';

/** A command: its word without the slash, and what follows. */
export interface Command {
  readonly word: 'new' | 'stop' | 'agent' | 'help' | 'start';
  readonly rest: string;
}

const COMMAND = /^\/(new|stop|agent|help|start)(?:\s+(.*))?$/is;

/** Reads a command (CH-5). Any other word, with a slash or not, is for the agent. */
export function commandOf(text: string): Command | undefined {
  const line = text.trim();
  if (line.length > 1_000) return undefined;
  const [, word, rest = ''] = COMMAND.exec(line) ?? [];
  return word === undefined ? undefined : { word: word.toLowerCase() as Command['word'], rest: rest.trim() };
}

/** What a command that waits in the queue does: other settings of the chat, and the answer. */
export function runCommand(
  { word, rest }: Command,
  settings: ChatSettings,
  agents: ChannelAgents,
): { readonly settings: ChatSettings; readonly text: string } {
  const { agent, sessions = 0 } = settings;
  if (word === 'new') return { settings: { agent, sessions: sessions + 1 }, text: NOTICES.newSession };
  if (word !== 'agent') return { settings, text: NOTICES.help };
  const names = agents.names();
  if (rest === '') return { settings, text: NOTICES.agents(names, agents.chosen(agent)) };
  const name = names.find((one) => one === rest) ?? names.find((one) => one.toLowerCase() === rest.toLowerCase());
  if (name === undefined) return { settings, text: NOTICES.noSuchAgent(rest.slice(0, 100), names) };
  return { settings: { agent: name, sessions }, text: NOTICES.agentChosen(name) };
}
