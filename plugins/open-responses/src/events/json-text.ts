import type { TurnText } from '@plugboard/kernel/contracts';
import { escaped } from '@plugboard/turn-routes';

/** A piece of the model's text, as the model server escaped it where that is available. */
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
