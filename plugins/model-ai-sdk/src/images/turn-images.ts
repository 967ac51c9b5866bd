import type { ModelRequest } from '@plugboard/kernel';
import { Account, type AddressPolicy, TurnError } from '@plugboard/kernel/contracts';
import { fetchImage, type Image } from './fetch-image.js';
import { Permits } from './permits.js';

/** Images that are fetched at once for one caller (S-68). */
const MAX_AT_ONCE = 2;
/** Characters of base64 for a byte. */
const BASE64 = 4 / 3;

type TurnAccount = NonNullable<ModelRequest['account']>;

interface ImageOptions {
  /** Bytes of one image. */
  readonly limit: number;
  readonly addresses: AddressPolicy;
}

/**
 * Fetches images for turns (S-68). Their memory is reserved in the account of the turn before they
 * are held, and stays reserved as long as it: the steps and attempts of a turn share what was
 * fetched.
 */
export class TurnImages {
  readonly #options: ImageOptions;
  readonly #fetched = new WeakMap<TurnAccount, Map<string, Promise<Image>>>();
  readonly #permits = new Permits(MAX_AT_ONCE);

  constructor(options: ImageOptions) {
    this.#options = options;
  }

  /**
   * @throws TurnError `overloaded` without memory, another Error with half a sentence that says why
   *   the image cannot be fetched.
   */
  fetch(url: string, account: TurnAccount | undefined, signal: AbortSignal): Promise<Image> {
    if (!account) return fetchImage(url, { ...this.#options, reserve: () => {} }, signal);
    const images = this.#fetched.get(account) ?? new Map<string, Promise<Image>>();
    this.#fetched.set(account, images);
    const known = images.get(url);
    if (known) return known;
    const image = this.#fetchFor(url, account, signal).catch((error) => {
      // Another attempt may succeed. What a server refuses, it refuses in the next step, too.
      if (signal.aborted || error instanceof TurnError) images.delete(url);
      throw error;
    });
    images.set(url, image);
    return image;
  }

  async #fetchFor(url: string, account: TurnAccount, signal: AbortSignal): Promise<Image> {
    const release = await this.#permits.acquire(account.owner.join('\n'), signal);
    let reserved = 0;
    const reserve = (bytes: number) => {
      const cost = Account.costOf(Math.ceil(bytes * BASE64));
      account.require(cost);
      reserved += cost;
    };
    try {
      return await fetchImage(url, { ...this.#options, reserve }, signal);
    } catch (error) {
      account.release(reserved);
      throw error;
    } finally {
      release();
    }
  }
}
