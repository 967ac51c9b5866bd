/** Class graphs in a plugin, with tsyringe. */
import 'reflect-metadata';

export { inject } from 'tsyringe';
export { CONTEXT, createGraph } from './host/registration/class-graph.js';
