/** A message as it is sent. */
export type WireMessage = Readonly<Record<string, unknown>> & { readonly role: string };
