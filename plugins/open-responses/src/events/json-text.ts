import type { TurnText } from '@plugboard/kernel/contracts';

/** Escapes a text for use inside the quotes of a JSON string. */
export function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/**
 * The same for a piece of the model's text, reusing the model server's own escaping where it is
 * available.
 */
export function escapedText({ json, text }: TurnText): string {
  return json ?? escaped(text);
}

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
  return json.startsWith(EXTENSION);
}

const EXTENSION = `${START}svc:`;
