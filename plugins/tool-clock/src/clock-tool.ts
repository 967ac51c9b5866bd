import { CLOCK, type Clock, CONFIG, inject, injectable, type Tool, type ToolSource } from '@plugboard/kernel';
import type { ClockConfig } from './config.js';

/** Offers one tool, which reads the server's clock. */
@injectable()
export class ClockTool implements ToolSource {
  readonly single = true;
  readonly #tool: Tool;

  constructor(@inject(CONFIG) config: ClockConfig, @inject(CLOCK) clock: Clock) {
    this.#tool = {
      name: 'clock',
      description: 'Tells the current date and time in a time zone.',
      inputSchema: {
        type: 'object',
        properties: {
          timeZone: {
            type: 'string',
            description: `An IANA time zone such as "America/New_York". Left out: ${config.timeZone}.`,
          },
        },
        additionalProperties: false,
      },
      effect: 'read',
      run: (input) => describe(clock.now(), typeof input.timeZone === 'string' ? input.timeZone : config.timeZone),
    };
  }

  tools(): readonly Tool[] {
    return [this.#tool];
  }
}

/** For example `Saturday, 21 November 2026, 14:05:09 (Europe/Paris, UTC+1)`. @throws where the zone is none, in words a model can act on. */
function describe(now: number, timeZone: string): string {
  if (!isTimeZone(timeZone)) throw new Error(`"${timeZone}" is no IANA time zone; use a name such as "Europe/Paris" or "UTC"`);
  const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone }).format(now);
  const time = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone }).format(now);
  const offset = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'shortOffset', timeZone })
    .formatToParts(now)
    .find((part) => part.type === 'timeZoneName')?.value;
  return `${day}, ${time} (${timeZone}, ${offset?.replace('GMT', 'UTC')})`;
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
