import { readFileSync, statSync } from 'node:fs';
import { type CheckContext, type ConfigProblem, DEFAULT_PROJECT, suggestion } from '@plugboard/kernel';
import type { BearerConfig, ConfiguredToken } from './config.js';
import { configuredDigest } from './known-token.js';
import { faultOfPlain } from './plain-token.js';
import { assertPrivate, parseTokens, TokenFileError } from './token-file.js';

/** Everything wrong with the options that the schema cannot say. No message repeats a secret. */
export function checkConfig({ tokens, tokensFile }: BearerConfig, context: CheckContext): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const projects = [DEFAULT_PROJECT, ...context.entries('projects')];
  const agents = context.entries('agents');
  for (const [index, token] of tokens.entries()) {
    const add = (path: readonly (string | number)[], message: string) =>
      problems.push({ path: ['tokens', index, ...path], message });
    const { project, name } = token;
    if (!projects.includes(project)) {
      add(
        ['project'],
        `unknown project "${project}"${suggestion(project, projects)}; every project but default stands under projects`,
      );
    }
    token.agents?.forEach((agent, place) => {
      if (!agents.includes(agent)) add(['agents', place], `unknown agent "${agent}"${suggestion(agent, agents)}`);
    });
    const secret = faultOfSecret(token);
    if (secret) add(secret.path, secret.message);
    const earlier = tokens.slice(0, index);
    if (earlier.some((other) => other.name === name))
      add(['name'], `another token is called "${name}" too; logs could not tell them apart`);
    const digest = configuredDigest(token);
    const twin = digest && earlier.find((other) => configuredDigest(other) === digest);
    if (twin) add([], `it is the same token as "${twin.name}"; every name needs a secret of its own`);
  }
  const file = faultOfFile(context.resolvePath(tokensFile));
  if (file) problems.push({ path: ['tokensFile'], message: file });
  return problems;
}

function faultOfSecret({ sha256, token }: ConfiguredToken): { path: string[]; message: string } | undefined {
  if (sha256 === undefined && token === undefined) {
    return { path: [], message: 'it has no secret: give it "token", or "sha256" as "plugboard token hash" prints it' };
  }
  if (sha256 !== undefined && token !== undefined)
    return { path: [], message: 'it has both "sha256" and "token"; keep one of them' };
  const message = token === undefined ? undefined : faultOfPlain(token);
  return message === undefined ? undefined : { path: ['token'], message };
}

/** What is wrong with a tokens file that is there, and that whoever checks may read. */
function faultOfFile(path: string): string | undefined {
  try {
    assertPrivate(path, statSync(path).mode);
    parseTokens(path, readFileSync(path, 'utf8'));
    return undefined;
  } catch (error) {
    return error instanceof TokenFileError ? error.message : undefined; // the start tells whether the server may read it
  }
}
