import { readFileSync, statSync } from 'node:fs';
import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import { DEFAULT_PROJECT, suggestion } from '@plugboard/kernel/contracts';
import type { BearerConfig, ConfiguredToken } from './config.js';
import { assertPrivate, parseTokens } from './files/token-file.js';
import { DEFAULT_FILE } from './storage/issued-token-storage.js';
import { agentProblem } from './tokens/agent-problem.js';
import { secretProblem } from './tokens/configured-secret.js';
import { configuredDigest } from './tokens/known-token.js';
import { TokensUnusable } from './tokens/token-record.js';

/** Checks what the schema cannot express. No message quotes a secret. */
export function checkConfig({ tokens, tokensFile = DEFAULT_FILE }: BearerConfig, context: CheckContext): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const projects = [DEFAULT_PROJECT, ...context.entries('projects')];
  for (const [index, token] of tokens.entries()) {
    const add = (path: readonly (string | number)[], message: string) =>
      problems.push({ path: ['tokens', index, ...path], message });
    const { project, name } = token;
    if (!projects.includes(project)) {
      add(
        ['project'],
        `unknown project "${project}"${suggestion(project, projects)}; every project except default must be listed under projects`,
      );
    }
    token.agents?.forEach((agent, place) => {
      const problem = projects.includes(project) ? agentProblem(agent, project, context.entries) : undefined;
      if (problem !== undefined) add(['agents', place], `there is ${problem}`);
    });
    const secret = tokenSecretProblem(token);
    if (secret) add(secret.path, secret.message);
    const earlier = tokens.slice(0, index);
    if (earlier.some((other) => other.name === name))
      add(['name'], `the name "${name}" is used twice; logs could not tell the tokens apart`);
    const digest = configuredDigest(token);
    const duplicate = digest && earlier.find((other) => configuredDigest(other) === digest);
    if (duplicate) add([], `the same secret as "${duplicate.name}"; each name needs its own secret`);
  }
  const file = fileProblem(context.resolvePath(tokensFile));
  if (file) problems.push({ path: ['tokensFile'], message: file });
  return problems;
}

function tokenSecretProblem({ sha256, token }: ConfiguredToken): { path: string[]; message: string } | undefined {
  if (sha256 === undefined && token === undefined) {
    return { path: [], message: 'the secret is missing: add "token", or "sha256" from "plugboard token hash"' };
  }
  if (sha256 !== undefined && token !== undefined)
    return { path: [], message: 'has both "sha256" and "token"; remove one of them' };
  const message = token === undefined ? undefined : secretProblem(token);
  return message === undefined ? undefined : { path: ['token'], message };
}

/** Checks the tokens file, if it exists and can be read by the user that checks. */
function fileProblem(path: string): string | undefined {
  try {
    assertPrivate(path, statSync(path).mode);
    parseTokens(path, readFileSync(path, 'utf8'));
    return undefined;
  } catch (error) {
    return error instanceof TokensUnusable ? error.message : undefined; // the start reports a file that the server cannot read
  }
}
