import { answerWith, ScriptedModel, senderFor, startRuntime } from '../harness.js';

/** The session of the tests about operations on sessions. */
export const S = { project: 'default', agent: 'assistant', key: 's' };

/** A runtime whose model always answers, and its operations on sessions. */
export async function conversing(app: Parameters<typeof startRuntime>[0] = {}) {
  const inner = await startRuntime({ models: { fast: new ScriptedModel(() => answerWith('ok')) }, ...app });
  return { ...inner, conversations: inner.runtime.conversations, send: senderFor(inner) };
}
