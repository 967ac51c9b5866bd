/** The `type` of an event that this codec wrote: events always begin with it. */
export function typeOfEvent(json: string): string {
  return json.slice(START.length, json.indexOf('"', START.length));
}

/** How every event begins. */
export const START = '{"type":"';

/**
 * Whether an event is one of the `svc:` extensions, which only connections that asked for them
 * receive.
 */
export function isExtension(json: string): boolean {
  return json.startsWith(`${START}svc:`);
}
