import { hostError } from '../base/errors.js';
import type { FileLayout } from '../configuration/file-layout.js';

/**
 * Refuses an entry in the wrong section of the file: each section that names a point is for plugins
 * that contribute to it, and no other section is.
 * @param contributes the ids of the points that the entry contributes to.
 * @throws HostError that says what it contributes and where it belongs.
 */
export function checkSection(section: string, contributes: readonly string[], { sections }: FileLayout): void {
  const own = sections[section]?.provides;
  const homeOf = (id: string) => Object.entries(sections).find(([, { provides }]) => provides?.point === id);
  const foreign = contributes.filter((id) => homeOf(id) && id !== own?.point);
  if (own === undefined ? foreign.length === 0 : contributes.includes(own.point)) return;
  const found = (own === undefined ? foreign : contributes).map((id) => {
    const home = homeOf(id)?.[1].provides;
    return home === undefined ? id : `${home.name} (${id})`;
  });
  const homes = new Set(foreign.map((id) => homeOf(id)?.[0] ?? ''));
  const others = Object.keys(sections).filter((name) => sections[name]?.shape === 'map' && !sections[name]?.provides);
  const places = found.length === 0 ? [] : homes.size > 0 ? [...homes] : others;
  throw hostError('SECTION_WRONG', found, own && `${own.name} (${own.point})`, section, places);
}
