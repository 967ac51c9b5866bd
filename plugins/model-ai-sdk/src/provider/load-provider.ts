import type { LanguageModelV4 } from '@ai-sdk/provider';
import { ConfigFault } from '@plugboard/kernel';
import type { AiSdkConfig } from '../config.js';
import { isObject } from '../json/json.js';
import { resolveProvider } from './resolve-package.js';
import { otherSpecification, SPECIFICATION, withVersion } from './specification.js';

type Exports = Readonly<Record<string, unknown>>;
type Create = (settings: Readonly<Record<string, unknown>>) => unknown;

/**
 * Loads the provider package and creates the model (AI-1).
 *
 * @param folder that of the configuration.
 * @param request sends the package's requests.
 * @throws ConfigFault if the package is missing, is no provider of this specification, or refuses
 *   its settings.
 */
export async function loadModel(config: AiSdkConfig, folder: string, request: typeof fetch): Promise<LanguageModelV4> {
  const { module, shown } = await importProvider(config.provider, folder);
  const create = createFunction(module, config.create, shown);
  const { settings, credentials, apiKey, baseUrl, headers } = config;
  const provider = attempt(['settings'], `${shown} refuses its settings`, () =>
    create({
      ...settings,
      ...credentials,
      ...(apiKey ? { apiKey } : {}),
      ...(baseUrl === undefined ? {} : { baseURL: baseUrl }),
      headers: { ...headers },
      fetch: request,
    }),
  );
  assertSpecification(provider, shown);
  const model = attempt(['model'], `${shown} refuses the model`, () => provider.languageModel(config.model));
  assertSpecification(model, shown);
  return model as unknown as LanguageModelV4;
}

async function importProvider(provider: string, folder: string): Promise<{ module: Exports; shown: string }> {
  try {
    const url = resolveProvider(provider, folder);
    return { module: await import(url), shown: withVersion(provider, url) };
  } catch (error) {
    throw fault(['provider'], `"${provider}" cannot be loaded: ${reasonOf(error)}`);
  }
}

/** Finds the function that creates a provider: `create` followed by the provider's name. */
function createFunction(module: Exports, name: string | undefined, shown: string): Create {
  if (name !== undefined) {
    const chosen = module[name];
    if (typeof chosen === 'function') return chosen as Create;
    throw fault(['create'], `${shown} has no function "${name}"; it has ${Object.keys(module).join(', ') || 'no exports'}`);
  }
  const names = Object.keys(module).filter((key) => /^create[A-Z]/.test(key) && typeof module[key] === 'function');
  // Some packages export a function under its old name too.
  const distinct = names.filter((key, i) => names.findIndex((other) => module[other] === module[key]) === i);
  const [only, ...others] = distinct;
  if (only === undefined) throw fault(['provider'], `${shown} is not a provider package: it exports no create function`);
  if (others.length > 0) throw fault(['provider'], `${shown} has several providers; set create to one of ${distinct.join(', ')}`);
  return module[only] as Create;
}

type Versioned = { readonly specificationVersion: string; readonly languageModel: (id: string) => unknown };

/** A provider, which may be a function, or a model. */
function assertSpecification(value: unknown, shown: string): asserts value is Versioned {
  const version = isObject(value) || typeof value === 'function' ? Reflect.get(value, 'specificationVersion') : undefined;
  if (version === SPECIFICATION) return;
  throw fault(
    ['provider'],
    version === undefined
      ? `${shown} is not a provider package: what it creates has no specificationVersion`
      : otherSpecification(shown, String(version)),
  );
}

function attempt<T>(path: readonly string[], what: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw fault(path, `${what}: ${reasonOf(error)}`);
  }
}

export function fault(path: readonly string[], message: string): ConfigFault {
  return new ConfigFault([{ path, message }]);
}

export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n')[0] ?? '';
}
