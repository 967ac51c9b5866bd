/**
 * Class graphs in a plugin: tsyringe's decorator of constructor parameters, the token of the
 * entry's context, and the function that creates the graph.
 */
import 'reflect-metadata';

export { inject } from 'tsyringe';
export { CONTEXT, createGraph } from './host/registration/class-graph.js';
