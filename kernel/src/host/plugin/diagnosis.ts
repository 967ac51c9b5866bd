/** Where the module of a plugin is. */
export interface ModuleLocation {
  readonly url: string;
  readonly path: string;
  /** The path for messages, with the name and version of the module's package if it has its own. */
  readonly shown: string;
  /** The module's package; undefined if it has none. */
  readonly packageName: string | undefined;
}

/** What a program adds to the host to explain the accidents of plugin authors. */
export interface Diagnosis {
  /**
   * Runs the `register` of all entries, and ends it from outside if it takes longer than the limit.
   *
   * @param limit milliseconds.
   * @returns whether it ended by itself.
   * @throws what the plugins throw.
   */
  runWithin(limit: number, register: () => void): boolean;
  /**
   * Says why a module cannot be imported, and what to do about it.
   *
   * @returns undefined if there are no better words than those of the error.
   */
  explainImport(error: unknown, module: ModuleLocation): Promise<string | undefined>;
}

/** Explains nothing: a `register` that never returns blocks the process. */
export const NO_DIAGNOSIS: Diagnosis = {
  runWithin: (_, register) => {
    register();
    return true;
  },
  explainImport: async () => undefined,
};
