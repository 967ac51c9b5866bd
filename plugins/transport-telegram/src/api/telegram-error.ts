/** A call of the Bot API that failed. The message has no token and no payload. */
export class TelegramError extends Error {
  override readonly name = 'TelegramError';

  constructor(
    /** As Telegram numbers it; undefined if no answer of Telegram came. */
    readonly code: number | undefined,
    /** What Telegram says, or why no answer came. */
    readonly description: string,
    /** Seconds that Telegram wants no further call of the kind. */
    readonly retryAfter?: number | undefined,
    /** The supergroup that the group has become. */
    readonly migratedTo?: number | undefined,
    /** Whether no answer came within the limit of the call. */
    readonly isLate = false,
  ) {
    super(code === undefined ? `no answer of Telegram: ${description}` : `Telegram answers ${code}: ${description}`);
  }

  /** The token is wrong, or was revoked: nothing that is sent is at fault. */
  get refusesToken(): boolean {
    return this.code === 401 || (this.code === 404 && this.description === 'Not Found');
  }

  /** Another process polls the same bot. */
  get isOtherPoller(): boolean {
    return this.code === 409 && !/webhook/i.test(this.description);
  }
}
