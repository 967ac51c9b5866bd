import { tabStorage } from './tab-storage.js';

/**
 * A prompt and parameters that are tried for one session, as they were typed. Empty: the agent's
 * own.
 * @typedef {{ instructions: string, temperature: string, maxTokens: string, effort: string }} Trial
 */

/** @typedef {{ agent: string, id: string, sessionKey: string, changesAgent: boolean }} Chat */

const PREFIX = 'plugboard.trial.';

/** @type {Trial} */
const NONE = { instructions: '', temperature: '', maxTokens: '', effort: '' };

/** Efforts that models know. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high'];

/** What is tried in a conversation. The tab keeps it. @param {Chat} chat @returns {Trial} */
export function trialOf(chat) {
  return { ...NONE, ...JSON.parse(tabStorage.get(keyOf(chat)) ?? '{}') };
}

/** @param {Chat} chat @param {Partial<Trial>} change */
export function changeTrial(chat, change) {
  const trial = { ...trialOf(chat), ...change };
  if (isTrial(trial)) tabStorage.set(keyOf(chat), JSON.stringify(trial));
  else resetTrial(chat);
}

/** @param {Chat} chat */
export function resetTrial(chat) {
  tabStorage.delete(keyOf(chat));
}

/** Forgets what is tried in all conversations. */
export function forgetTrials() {
  for (const key of tabStorage.keys()) if (key.startsWith(PREFIX)) tabStorage.delete(key);
}

/**
 * The conversation is about to get its first message: what was tried for it stays with it. @param
 * {Chat} chat
 */
export function beginTrial(chat) {
  const trial = trialOf(chat);
  resetTrial(chat);
  const { agent, sessionKey } = chat;
  changeTrial({ agent, id: 'begun', sessionKey, changesAgent: false }, trial);
}

/** Whether something is tried. @param {Trial} trial */
export function isTrial(trial) {
  return Object.values(trial).some((text) => text.trim() !== '');
}

/** What is wrong with a field, in words. @param {Trial} trial @returns {Partial<Trial>} */
export function problemsOf({ temperature, maxTokens }) {
  return {
    ...(temperature !== '' && numberIn(temperature, 0, 2) === undefined && { temperature: 'A number from 0 to 2.' }),
    ...(maxTokens !== '' && !Number.isInteger(numberIn(maxTokens, 1, 1e9)) && { maxTokens: 'A whole number, at least 1.' }),
  };
}

/** Fields of a request of the Responses protocol. @param {Trial} trial */
export function responsesFields(trial) {
  const { instructions, effort } = trial;
  const { temperature, maxTokens } = numbersOf(trial);
  return {
    ...(instructions.trim() !== '' && { instructions }),
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
    reasoning: { summary: 'auto', ...(effort !== '' && { effort }) },
  };
}

/**
 * A request for a chat completion, with what is tried. @param {Trial} trial @param {{ role: string,
 * content: unknown }[]} messages
 */
export function chatFields(trial, messages) {
  const { instructions, effort } = trial;
  const { temperature, maxTokens } = numbersOf(trial);
  return {
    messages: instructions.trim() === '' ? messages : [{ role: 'system', content: instructions }, ...messages],
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_completion_tokens: maxTokens }),
    ...(effort !== '' && { reasoning_effort: effort }),
  };
}

/** A wrong number is not sent. @param {Trial} trial */
function numbersOf({ temperature, maxTokens }) {
  const tokens = numberIn(maxTokens, 1, 1e9);
  return { temperature: numberIn(temperature, 0, 2), maxTokens: Number.isInteger(tokens) ? tokens : undefined };
}

/** @param {string} text @param {number} least @param {number} most */
function numberIn(text, least, most) {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  return value >= least && value <= most ? value : undefined;
}

/** A conversation that has not begun is that of the agent's next session. @param {Chat} chat */
function keyOf({ agent, id, sessionKey, changesAgent }) {
  return `${PREFIX}${agent} ${id === '' || changesAgent ? '' : sessionKey || 'stateless'}`;
}
