/** Types that browsers show and models take. */
const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** What the file dialog offers. */
export const ACCEPTED = TYPES.join();

/** The largest file that is read, in bytes. */
const MAX_FILE = 20_000_000;

/** The longest side of an image that is made smaller, in pixels: models read no more. */
const MAX_SIDE = 1568;

/** An image with a longer side is refused by models, however few bytes it has. In pixels. */
const MAX_SENT_SIDE = 8000;

/**
 * Characters that the images of one message take together: a message of the live surface has 1 MB.
 */
const MAX_TOTAL = 900_000;

/** An image that takes more characters is made smaller. */
const MAX_IMAGE = 500_000;

/** An image cannot be made smaller than this and still be read, in characters. */
const MIN_IMAGE = 30_000;

/** Qualities of JPEG, the best first. */
const QUALITIES = [0.88, 0.75, 0.6, 0.4];

const SHOWN = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

/**
 * Whether the page shows an image itself: loading a remote one would tell its server. @param
 * {string} url
 */
export function isShown(url) {
  return SHOWN.test(url);
}

/**
 * An image file as a data URL. A large one is made smaller.
 * @param {File} file @param {readonly string[]} others images of the same message
 * @returns {Promise<string>}
 * @throws {Error} if it cannot be sent; its message says why
 */
export async function imageFrom(file, others) {
  const { name, size, type } = file;
  if (!TYPES.includes(type)) throw new Error(`“${name}” cannot be sent: only PNG, JPEG, GIF and WebP images can.`);
  if (size > MAX_FILE)
    throw new Error(`“${name}” is too large: ${megabytes(size)} MB. An image can have ${megabytes(MAX_FILE)} MB.`);
  const room = MAX_TOTAL - others.reduce((sum, { length }) => sum + length, 0);
  if (room < MIN_IMAGE)
    throw new Error(`“${name}” does not fit: the images of one message can have ${megabytes(MAX_TOTAL)} MB together.`);
  const bitmap = await createImageBitmap(file).catch(() => undefined);
  if (!bitmap) throw new Error(`“${name}” cannot be read as an image.`);
  const limit = Math.min(room, MAX_IMAGE);
  const isLarge = (size * 4) / 3 + 100 > limit || Math.max(bitmap.width, bitmap.height) > MAX_SENT_SIDE;
  const url = isLarge ? smaller(bitmap, limit) : await dataUrl(file);
  bitmap.close();
  if (url === undefined)
    throw new Error(`“${name}” does not fit: the images of one message can have ${megabytes(MAX_TOTAL)} MB together.`);
  return url;
}

/** @param {number} bytes */
function megabytes(bytes) {
  return (bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1 });
}

/**
 * @param {ImageBitmap} bitmap @param {number} limit @returns {string | undefined} undefined if it
 * stays too long
 */
function smaller(bitmap, limit) {
  for (let side = MAX_SIDE; side >= MAX_SIDE / 4; side /= 2) {
    const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
    const canvas = document.createElement('canvas');
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    const context = canvas.getContext('2d');
    if (!context) return undefined;
    context.fillStyle = '#fff'; // JPEG has no transparency
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    for (const quality of QUALITIES) {
      const url = canvas.toDataURL('image/jpeg', quality);
      if (url.length <= limit) return url;
    }
  }
  return undefined;
}

/** @param {Blob} blob @returns {Promise<string>} */
function dataUrl(blob) {
  const { promise, resolve, reject } = Promise.withResolvers();
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(blob);
  return promise;
}
