/**
 * Class graphs in a plugin: tsyringe's decorators, and the tokens that every entry's container
 * (`ctx.container`) provides.
 */
import 'reflect-metadata';

export { inject, injectable, singleton } from 'tsyringe';
export { BUDGETS, CLOCK, CONFIG, ENTRY, HOST, IDS, LOGGER } from './host/registration/injectables.js';
