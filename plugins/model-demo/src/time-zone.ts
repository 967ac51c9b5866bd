/**
 * Finds an IANA time zone in a prompt, by its name (`Europe/Paris`) or its city (`New York`). The
 * longest name wins.
 */
export function timeZoneIn(prompt: string): string | undefined {
  const said = ` ${plain(prompt)} `;
  let found: string | undefined;
  let length = 0;
  for (const zone of ['UTC', ...Intl.supportedValuesOf('timeZone')]) {
    for (const name of [plain(zone), plain(zone.slice(zone.lastIndexOf('/') + 1))]) {
      if (name.length > length && said.includes(` ${name} `)) {
        found = zone;
        length = name.length;
      }
    }
  }
  return found;
}

function plain(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}+]+/gu, ' ')
    .trim();
}
