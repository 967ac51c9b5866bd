import t from 'tap';
import { parseDate } from '../../../src/host/options/date.js';
import { parseDuration } from '../../../src/host/options/duration.js';
import { parseSize } from '../../../src/host/options/size.js';

t.test('durations in milliseconds', async (t) => {
  t.strictSame(
    ['500ms', '30s', '10m', '24h', '90d', '0s'].map(parseDuration),
    [500, 30_000, 600_000, 86_400_000, 7_776_000_000, 0],
  );
  for (const wrong of ['', '30', '1.5h', '-1s', '30 s', '1w', 's'])
    t.throws(() => parseDuration(wrong), { code: 'DURATION_INVALID' }, JSON.stringify(wrong));
});

t.test('dates that exist, in milliseconds since the epoch', async (t) => {
  const utc = (text: string) => new Date(parseDate(text) ?? Number.NaN).toISOString();
  t.equal(utc('2027-01-31'), '2027-01-31T00:00:00.000Z');
  t.equal(utc('2028-02-29'), '2028-02-29T00:00:00.000Z', 'a leap year');
  t.equal(utc('2027-01-31T23:30:00.5-01:00'), '2027-02-01T00:30:00.500Z');
  t.equal(utc('2027-01-31 12:00Z'), '2027-01-31T12:00:00.000Z');
  t.equal(parseDate('2027-01-31T12:00'), new Date(2027, 0, 31, 12).getTime(), 'without a zone: local time');
  for (const none of ['2027-02-29', '2027-02-30', '2027-04-31', '2027-13-01', '2027-00-10', '2027-01-00', '2027-02-30T10:00Z'])
    t.equal(parseDate(none), undefined, none);
  for (const wrong of ['', '2027', '2027-1-31', '31.01.2027', '2027-01-31 (x)', '2027-01-31T25:00Z', '2027-01-31T1'])
    t.equal(parseDate(wrong), undefined, wrong);
});

t.test('sizes in bytes, by powers of 1024', async (t) => {
  t.strictSame(['512b', '64kb', '20mb', '1gb'].map(parseSize), [512, 65_536, 20_971_520, 1_073_741_824]);
  for (const wrong of ['', '64', '1.5mb', '64kB', 'kb'])
    t.throws(() => parseSize(wrong), { code: 'SIZE_INVALID' }, JSON.stringify(wrong));
});
