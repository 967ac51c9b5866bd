/**
 * Says on the terminal that a fresh clone is built first: `npm start` would be silent meanwhile.
 */
import { existsSync } from 'node:fs';

if (!existsSync(new URL('../kernel/dist', import.meta.url))) console.log('building, this takes about 30 s the first time');
