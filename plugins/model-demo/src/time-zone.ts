/** The IANA time zone that a prompt names, in full (`Europe/Paris`) or by its city (`New York`); of several the longest name. */
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
