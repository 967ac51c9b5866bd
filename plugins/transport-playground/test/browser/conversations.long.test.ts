import t from 'tap';
import { branches } from './cases/branches.js';
import { chat } from './cases/chat.js';
import { connection } from './cases/connection.js';
import { turns } from './cases/turns.js';
import { watching } from './cases/watching.js';
import { inBrowser } from './support/in-browser.js';

inBrowser(t, { chat, turns, branches, watching, connection });
