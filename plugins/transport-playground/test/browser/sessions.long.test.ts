import t from 'tap';
import { access } from './cases/access.js';
import { approvals } from './cases/approvals.js';
import { findingSessions } from './cases/finding-sessions.js';
import { sessions } from './cases/sessions.js';
import { inBrowser } from './support/in-browser.js';

inBrowser(t, { approvals, sessions, findingSessions, access });
