import type { Clock, Tool, ToolSource } from '@plugboard/kernel';
import type { ClockConfig } from './config.js';

/** Offers one tool, which reads the server's clock. */
export class ClockTool implements ToolSource {
  readonly single = true;
  readonly #tool: Tool;

  constructor(config: ClockConfig, clock: Clock) {
    this.#tool = {
      name: 'clock',
      description: 'Tells the current date and time in a time zone.',
      inputSchema: {
        type: 'object',
        properties: {
          timeZone: {
            type: 'string',
            description: `An IANA time zone such as "America/New_York". Default: ${config.timeZone}.`,
          },
        },
        additionalProperties: false,
      },
      effect: 'read',
      run: ({ timeZone = config.timeZone }) => describe(clock.now(), String(timeZone)),
    };
  }

  tools(): readonly Tool[] {
    return [this.#tool];
  }
}

/** Formatters are expensive to create, so one per time zone is kept. */
const formatters = new Map<string, Intl.DateTimeFormat>();
const MAX_FORMATTERS = 64;

/**
 * For example `Saturday, 21 November 2026 at 14:05:09 UTC+1 (Europe/Paris)`.
 * @throws Error for the model if the time zone is unknown.
 */
function describe(now: number, timeZone: string): string {
  return `${formatterOf(timeZone).format(now).replace('GMT', 'UTC')} (${timeZone})`;
}

function formatterOf(timeZone: string): Intl.DateTimeFormat {
  const known = formatters.get(timeZone);
  if (known) return known;
  if (!isTimeZone(timeZone))
    throw new Error(`"${timeZone}" is not an IANA time zone: use a name such as "Europe/Paris" or "UTC"`);
  const formatter = new Intl.DateTimeFormat('en-GB', {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'shortOffset',
    timeZone,
  });
  if (formatters.size >= MAX_FORMATTERS) formatters.clear();
  formatters.set(timeZone, formatter);
  return formatter;
}

export function isTimeZone(name: string): boolean {
  if (name === 'UTC') return true; // the default needs none of ICU's data, which takes a while to load
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false; // the constructor throws for nothing else
  }
}
