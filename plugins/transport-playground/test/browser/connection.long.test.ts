import t from 'tap';
import { access } from './cases/access.js';
import { connection } from './cases/connection.js';
import { environmentFaults } from './cases/environment-faults.js';
import { inBrowser } from './support/in-browser.js';

inBrowser(t, { access, connection, environmentFaults });
