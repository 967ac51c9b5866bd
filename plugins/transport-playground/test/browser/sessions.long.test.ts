import t from 'tap';
import { approvals } from './cases/approvals.js';
import { findingSessions } from './cases/finding-sessions.js';
import { sessions } from './cases/sessions.js';
import { inBrowser } from './support/in-browser.js';

inBrowser(t, { approvals, findingSessions, sessions });
