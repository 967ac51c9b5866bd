import type { Logger as PinoLogger } from 'pino';

/** pino's interface. `log.info({ session }, 'turn ended')`. */
export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'isLevelEnabled'>;
