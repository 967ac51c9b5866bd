/** Class graphs in a plugin, with tsyringe. */
export { CONTEXT, createGraph, inject } from './host/registration/class-graph.js';
