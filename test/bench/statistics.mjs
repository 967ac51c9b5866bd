/** The median, the lowest and the highest of some numbers. */
export function summary(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return { median: percentile(values, 0.5), low: sorted[0], high: sorted.at(-1) };
}

export function percentile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** `1.23 (1.20 to 1.31)` */
export function format({ median, low, high }, digits = 2) {
  return `${median.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}
