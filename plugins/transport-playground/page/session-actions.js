import { ROOT } from './branches.js';
import { sessionTitle } from './sessions.js';

/** @typedef {import('./playground.js').Playground} Playground */
/** @typedef {import('./sessions.js').Session} Session */

/** Milliseconds without a key before a search is sent. */
const SEARCH_DELAY = 200;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let search;

/** @param {Playground} app @param {Partial<import('./sessions.js').SessionFilter>} change */
export function filterSessions(app, change) {
  Object.assign(app.sessions.filter, change);
  clearTimeout(search);
  search = setTimeout(() => void app.loadSessions(), SEARCH_DELAY);
  app.changed();
}

/** @param {Playground} app @param {Session} session @param {string} title */
export async function renameSession(app, session, title) {
  await app.try(async () => {
    for (const branch of await groupOf(app, session)) await app.sessions.rename(branch, title);
  });
}

/** Copies a session and opens the copy. @param {Playground} app @param {Session} session */
export async function forkSession(app, session) {
  await app.try(async () => {
    const copy = await app.sessions.fork(session);
    await app.sessions.rename(copy, `${sessionTitle(session)} (copy)`);
    await app.address.openSession(copy);
  });
}

/** Deletes a session with all its branches. @param {Playground} app @param {Session} session */
export async function deleteSession(app, session) {
  await app.try(async () => {
    for (const branch of await groupOf(app, session)) {
      await app.sessions.remove(branch);
      app.memory.forget(branch.id);
    }
    if (app.isShown(session)) app.newChat();
  });
}

/** @param {Playground} app @param {Session} session */
async function groupOf(app, session) {
  return ROOT in session.metadata ? app.sessions.group(session) : [session];
}
