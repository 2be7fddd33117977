import { providerFacts, type ProviderFacts } from "../../../../capabilities/index.ts";
import { findPackage, providerOf } from "../../../../workspace/files/index.ts";
import type { InspectedWorkspace } from "../../../../workspace/inspect-workspace.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { variableName } from "../../terminal/variable-name.ts";
import type { Found } from "./finding.ts";

/**
 * Checks the models of the settings and of the agents, and reports what is missing for a call of each. The values
 * of keys are not read.
 */
export async function providerFindings(
  models: readonly string[],
  workspace: InspectedWorkspace,
  env: Terminal["env"],
): Promise<readonly Found[]> {
  const facts = providerFacts(env);
  const found: Found[] = [];
  if (models.length === 0)
    found.push({
      state: "warning",
      text: "Neither the settings nor an agent name a model, so that reeve run needs --model.",
      fix: "export REEVE_MODEL=anthropic/claude-sonnet-5",
    });
  for (const model of models) {
    const provider = facts.find(({ name }) => name === providerOf(model));
    found.push(...(await modelFindings(model, provider, workspace, env)));
  }
  const keys = [...new Set(facts.flatMap(({ key }) => key ?? []))];
  found.push({
    state: "ok",
    text:
      keys.length === 0
        ? "The environment holds no key of a known provider."
        : `The environment holds these keys: ${keys.join(", ")}.`,
  });
  return found;
}

async function modelFindings(
  model: string,
  provider: ProviderFacts | undefined,
  { settings, places, isTrusted }: InspectedWorkspace,
  env: Terminal["env"],
): Promise<readonly Found[]> {
  const isOwn = settings.model === undefined || providerOf(settings.model) === providerOf(model);
  const { baseUrl, apiKeyEnv } = isOwn ? settings : {};
  const wanted = provider?.package ?? "@ai-sdk/openai-compatible";
  if (provider === undefined && baseUrl === undefined)
    return [
      {
        state: "error",
        text: `The model ${model} has no known provider, and no setting names its address.`,
        fix: "reeve config model baseUrl",
      },
    ];
  const found: Found[] = [];
  if (provider?.isInstalled === false) {
    const isInProject = (await findPackage(wanted, places.project)) !== undefined;
    if (!isInProject)
      found.push({
        state: "error",
        text: `${model} needs the package ${wanted}.`,
        fix: `npm install ${wanted}`,
      });
    else if (!isTrusted)
      found.push({
        state: "error",
        text: `${model} needs the package ${wanted}, which only the project has, and the project is not trusted.`,
        fix: "reeve trust",
      });
  }
  if (apiKeyEnv !== undefined && (env[apiKeyEnv] ?? "") === "") {
    const name = variableName(apiKeyEnv, env);
    const fix = name === apiKeyEnv ? `export ${name}=KEY` : "reeve config apiKeyEnv";
    found.push({
      state: "error",
      text: `${model} needs the variable that the setting "apiKeyEnv" names, ${name}, and it is not set.`,
      fix,
    });
  } else if (apiKeyEnv === undefined && provider?.needsKey === true && provider.key === null)
    found.push({
      state: "error",
      text: `${model} needs ${provider.keys.join(" or ")}, which is not set.`,
      fix: `export ${provider.keys[0]}=KEY`,
    });
  return found.length > 0
    ? found
    : [{ state: "ok", text: `${model} has its package, and all that it needs is set.` }];
}
