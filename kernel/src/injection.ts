import 'reflect-metadata';

/** Class graphs in a plugin: tsyringe's decorators, and what every entry's container provides. */
export { inject, injectable, singleton } from 'tsyringe';
export { BUDGETS, CLOCK, CONFIG, ENTRY, HOST, IDS, LOGGER } from './host/registration/injection.js';
