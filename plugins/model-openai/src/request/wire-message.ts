/** A message in a request to the model server. */
export type WireMessage = Readonly<Record<string, unknown>> & { readonly role: string };
