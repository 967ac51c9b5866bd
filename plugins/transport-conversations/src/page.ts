/** A list as the reference protocol shapes it. */
export interface Page<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  /** Null where it is empty. */
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** @param found all that was asked for, and one more where there is more. */
export function pageOf<T extends { readonly id: string }>(found: readonly T[], limit: number): Page<T> {
  const data = found.slice(0, limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: found.length > limit,
  };
}
