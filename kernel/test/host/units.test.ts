import t from 'tap';
import { parseDuration } from '../../src/host/options/duration.js';
import { parseSize } from '../../src/host/options/size.js';

t.test('durations in milliseconds', async (t) => {
  t.strictSame(
    ['500ms', '30s', '10m', '24h', '90d', '0s'].map(parseDuration),
    [500, 30_000, 600_000, 86_400_000, 7_776_000_000, 0],
  );
  for (const wrong of ['', '30', '1.5h', '-1s', '30 s', '1w', 's'])
    t.throws(() => parseDuration(wrong), { code: 'DURATION_INVALID' }, JSON.stringify(wrong));
});

t.test('sizes in bytes, by powers of 1024', async (t) => {
  t.strictSame(['512b', '64kb', '20mb', '1gb'].map(parseSize), [512, 65_536, 20_971_520, 1_073_741_824]);
  for (const wrong of ['', '64', '1.5mb', '64kB', 'kb'])
    t.throws(() => parseSize(wrong), { code: 'SIZE_INVALID' }, JSON.stringify(wrong));
});
