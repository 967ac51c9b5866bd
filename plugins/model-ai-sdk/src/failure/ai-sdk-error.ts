/**
 * Whether an error is of a class of `@ai-sdk/provider`, whichever copy of that package made it.
 *
 * @param name without its prefix, for example `APICallError`.
 */
export function isAiSdkError(error: unknown, name: string): error is Error {
  return error instanceof Error && Reflect.get(error, Symbol.for(`vercel.ai.error.AI_${name}`)) === true;
}

/** Whether a package found no credentials of the cloud: those of AWS, or Google's default ones. */
export function isMissingCredentials(error: unknown): error is Error {
  return error instanceof Error && /\b(default|AWS) credentials\b/i.test(error.message);
}
