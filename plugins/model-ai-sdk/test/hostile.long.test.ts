/** The formats that `hostile.test.ts` leaves out. */
import t from 'tap';
import { assertRefused } from './hostile-provider.js';

for (const name of ['google', 'openai', 'mistral'] as const) {
  t.test(`S-75 ${name}: an event, an error body and a compressed answer without end are refused`, (t) => assertRefused(t, name));
}
