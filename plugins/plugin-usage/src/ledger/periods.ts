/** Days and months in UTC. */

const DAY = 24 * 3_600_000;

/** One day, one month, or all time. */
export interface Period {
  /** `2026-11-28`, `2026-11`, `total`. */
  readonly name: string;
  /** The first day; undefined for all time. */
  readonly from: string | undefined;
  /** Milliseconds since 1970 when the next one begins. Undefined: never. */
  readonly end: number | undefined;
}

/** `2026-11-28`. @param time milliseconds since 1970. */
export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function periodOf(per: 'day' | 'month' | 'total', time: number): Period {
  const day = dayOf(time);
  if (per === 'total') return { name: 'total', from: undefined, end: undefined };
  if (per === 'day') return { name: day, from: day, end: Date.parse(day) + DAY };
  const { first, last } = monthOf(day);
  return { name: day.slice(0, 7), from: first, end: Date.parse(last) + DAY };
}

/** The first and the last day of the month of a day. */
export function monthOf(day: string): { readonly first: string; readonly last: string } {
  const [year = 0, month = 0] = day.split('-').map(Number);
  return { first: `${day.slice(0, 7)}-01`, last: dayOf(Date.UTC(year, month, 0)) };
}

/** Whether a text is a day of the calendar. */
export function isDay(text: string): boolean {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(time) && dayOf(time) === text;
}
