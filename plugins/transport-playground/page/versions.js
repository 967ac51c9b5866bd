import { branchMetadata, ROOT } from './branches.js';
import { changeTrial, trialOf } from './trial.js';
import { isAsked } from './turn.js';

/** @typedef {import('./conversation.js').Conversation} Conversation */
/** @typedef {import('./playground.js').Playground} Playground */
/** @typedef {import('./sessions.js').Session} Session */
/** @typedef {import('./turn.js').Turn} Turn */

/**
 * Sends a message again, perhaps changed. A session that has it is copied up to it, so that the
 * first answer is kept as another branch.
 * @param {Playground} app @param {Conversation} chat @param {Turn} turn @param {string} [input]
 */
export async function sendAgain(app, chat, turn, input = turn.input) {
  const { session } = chat;
  if (chat.isRunning) return;
  if (!session || !turn.isKept || (turn.decisions.length > 0 && input === turn.input)) return chat.again(turn, input);
  await app.try(async () => {
    const branch = app.conversation(session.agent);
    await branch.history.open((await branchBefore(app, chat, turn, session)).id);
    changeTrial(branch, trialOf(chat));
    app.replace(chat, branch);
    await branch.send(input, turn.images);
    await branch.history.readBranches();
  });
}

/**
 * Makes a copy of a session that ends before a turn.
 * @param {Playground} app @param {Conversation} chat @param {Turn} turn @param {Session} session
 */
async function branchBefore({ sessions }, { turns }, turn, session) {
  const later = turns.slice(turns.indexOf(turn)).filter((one) => one.isKept && isAsked(one));
  const message = await sessions.messageOf(session.id, later);
  if (message === undefined) throw new Error('This line decided about a call. It cannot be changed or sent again.');
  const copy = await sessions.fork(session, message); // without the turn that the message begins
  if (!(ROOT in session.metadata)) await sessions.note(session.id, { [ROOT]: session.id });
  return sessions.note(copy.id, branchMetadata(session, copy.turns + 1));
}

/**
 * Shows another branch in place of a conversation.
 * @param {Playground} app @param {Conversation} chat @param {Session} session
 */
export async function openBranch(app, chat, session) {
  const running = app.runningWith(session.id);
  const branch = running ?? app.conversation(session.agent);
  if (running || (await app.try(() => branch.history.open(session.id)))) app.replace(chat, branch);
}
