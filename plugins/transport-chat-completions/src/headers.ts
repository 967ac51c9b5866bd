/** Nothing is dropped in silence: what a request asked for in vain is named. */
export function ignoredHeader(names: readonly string[]): Readonly<Record<string, string>> {
  return names.length === 0 ? {} : { 'x-ignored-params': names.join(', ') };
}

/** The name of the connection that answered, where it is known when the head is sent; one that does not fit a header, encoded. */
export function connectionHeader(name: string | undefined): Readonly<Record<string, string>> {
  if (name === undefined) return {};
  return { 'x-model-connection': /^[ -~]*$/.test(name) ? name : encodeURIComponent(name.toWellFormed()) };
}
