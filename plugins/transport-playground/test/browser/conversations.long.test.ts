import t from 'tap';
import { branches } from './cases/branches.js';
import { chat } from './cases/chat.js';
import { turns } from './cases/turns.js';
import { watching } from './cases/watching.js';
import { inBrowser } from './support/in-browser.js';

inBrowser(t, { branches, chat, turns, watching });
