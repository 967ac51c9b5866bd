/** The time of day in UTC, for operators: `02:12:21Z`. */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)}Z`;
}
