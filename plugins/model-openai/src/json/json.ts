/** Whether a value is a JSON object: not null, not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is a non-empty string. Many model servers send `""` where others send null. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
