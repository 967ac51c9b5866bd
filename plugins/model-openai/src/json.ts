/** What JSON calls an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A string with something in it: many model servers send `""` where others send null. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
