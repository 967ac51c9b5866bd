/** @type {Storage | undefined} */
let storage;
try {
  storage = window.sessionStorage;
} catch {
  // the browser blocks it for this page
}

/** What the browser does not store stays until the page is left. @type {Map<string, string>} */
const unstored = new Map();

/** Texts that the tab stores, and no other tab reads: `sessionStorage`, where there is room. */
export const tabStorage = {
  /** All keys, the oldest first. */
  keys() {
    return [...Object.keys(storage ?? {}), ...unstored.keys()];
  },

  /** @param {string} key */
  get(key) {
    return unstored.get(key) ?? storage?.getItem(key) ?? undefined;
  },

  /** @param {string} key @param {string} text @returns {boolean} whether a reload keeps it */
  set(key, text) {
    this.delete(key);
    try {
      storage?.setItem(key, text);
      if (storage) return true;
    } catch {
      // it is full
    }
    unstored.set(key, text);
    return false;
  },

  /** @param {string} key */
  delete(key) {
    unstored.delete(key);
    storage?.removeItem(key);
  },
};
