import type { InjectionToken } from 'tsyringe';
import type { Clock, IdSource } from '../base/ambient.js';
import type { HostView } from '../lifecycle/status.js';
import type { Logger } from '../log/log.js';
import type { Budgets } from '../plugin/budgets.js';

/** What every entry's container provides: `constructor(@inject(CONFIG) config: Config)`. */
export const CONFIG: InjectionToken<unknown> = Symbol.for('plugboard.config');
export const ENTRY: InjectionToken<string> = Symbol.for('plugboard.entry');
export const LOGGER: InjectionToken<Logger> = Symbol.for('plugboard.logger');
export const CLOCK: InjectionToken<Clock> = Symbol.for('plugboard.clock');
export const IDS: InjectionToken<IdSource> = Symbol.for('plugboard.ids');
export const BUDGETS: InjectionToken<Budgets> = Symbol.for('plugboard.budgets');
export const HOST: InjectionToken<HostView> = Symbol.for('plugboard.host');
