// Preloaded into a server: writes the modules that it loads, with their sizes, when it exits.
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const modules = [];
registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    modules.push({ url, bytes: loaded.source?.length ?? 0 });
    return loaded;
  },
});
process.on('exit', () => writeFileSync(process.env.MODULES, JSON.stringify(modules)));
