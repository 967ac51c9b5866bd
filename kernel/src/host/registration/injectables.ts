import type { InjectionToken } from 'tsyringe';
import type { Clock, IdSource } from '../base/ambient.js';
import type { HostView } from '../lifecycle/status.js';
import type { Logger } from '../log/log.js';
import type { Budgets } from '../plugin/budgets.js';

/** The entry's validated options, in its container. Inject them with `@inject(CONFIG)`. @public */
export const CONFIG: InjectionToken<unknown> = Symbol.for('plugboard.config');
/** The entry's place in the file, in its container: `greeters.hello`. @public */
export const ENTRY: InjectionToken<string> = Symbol.for('plugboard.entry');
/**
 * The entry's `Logger`, in its container. Every line has the fields `plugin` and `entry`.
 *
 * @public
 */
export const LOGGER: InjectionToken<Logger> = Symbol.for('plugboard.logger');
/** The server's `Clock`, in an entry's container. @public */
export const CLOCK: InjectionToken<Clock> = Symbol.for('plugboard.clock');
/** The server's `IdSource`, in an entry's container. @public */
export const IDS: InjectionToken<IdSource> = Symbol.for('plugboard.ids');
/** The server's `Budgets`, in an entry's container. @public */
export const BUDGETS: InjectionToken<Budgets> = Symbol.for('plugboard.budgets');
/** The `HostView` of the server, in an entry's container. @public */
export const HOST: InjectionToken<HostView> = Symbol.for('plugboard.host');
