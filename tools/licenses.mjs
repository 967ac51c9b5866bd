import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The names, versions and licenses of the packages that bundled files belong to. */
export function licenses(folder, files) {
  const owners = files.flatMap((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(resolve(folder, file)) ?? []);
  return [...new Set(owners)].toSorted().map(license).join('\n\n');
}

function license(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const texts = globSync(['LICEN[CS]E*', 'licen[cs]e*', 'CopyrightNotice*'], { cwd: folder }).map((file) =>
    readFileSync(join(folder, file), 'utf8').trim(),
  );
  return [`${name} ${version} (${license})`, ...new Set(texts)].join('\n\n');
}
