import { findPackage } from "../../../../workspace/files/index.ts";
import {
  lackOfModel,
  listedModelNames,
  namedModel,
  priceCatalog,
  providerFacts,
} from "../../../../capabilities/index.ts";
import { Fault, type Model, type ModelPrice, type PriceTable } from "../../../../kernel/index.ts";
import { openWorkspace, type Workspace } from "../../../../workspace/workspace.ts";
import { reportNotices } from "../../setup/run-workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, counted } from "../../terminal/format.ts";
import { variableName } from "../../terminal/variable-name.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface ModelsCommandOptions {
  readonly profile?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

/** Data about a model that are known without calling it. */
interface ModelFacts {
  /** Name as `provider/id`. */
  readonly model: string;
  /** The agents that use the model. Empty for a model that is only in the price list. */
  readonly agents: readonly string[];
  /** Size of the context window in tokens. `null` if unknown. */
  readonly contextWindow: number | null;
  readonly maxOutputTokens: number | null;
  /** Price of a million tokens. `null` if unknown. */
  readonly usdPerMillion: Readonly<Record<string, number>> | null;
  /**
   * What is missing on this machine for a call: a key, an address or a package. `null` if nothing is known to be
   * missing.
   */
  readonly lacks: string | null;
}

/**
 * Lists the models that the agents of the workspace use, with their context window, their price and what is missing
 * for a call.
 */
export async function modelsCommand(
  { profile, all = false, json = false }: ModelsCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  await using workspace = await openWorkspace(profile === undefined ? {} : { profile });
  const prices = workspace.config.runtime?.prices ?? priceCatalog();
  await prices.load?.();
  const users = usersOf(workspace);
  const listed = all ? await listedModelNames(providersOf([...users.keys()])) : [];
  const facts: ModelFacts[] = [];
  for (const name of new Set([...users.keys(), ...listed]))
    facts.push(await factsOf(name, users.get(name) ?? [], { workspace, prices, env: terminal.env }));
  const rows = facts.map(rowOf);
  const lines = json
    ? facts.map((each) => JSON.stringify(each))
    : columns(terminal.isWatched && rows.length > 0 ? [heading, ...rows] : rows);
  for (const line of lines) await terminal.out(line);
  if (facts.length === 0)
    terminal.say('No model is named; set REEVE_MODEL, or "model" in settings.json, to provider/id.');
  reportNotices(workspace, terminal);
  return "ok";
}

/** Returns the models of the settings and of the agents, each with the agents that use it. */
function usersOf(workspace: Workspace): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, string[]>();
  const { model } = workspace.settings;
  if (model !== undefined) users.set(model, []);
  for (const agent of workspace.agents())
    if (agent.model !== undefined) users.set(agent.model, [...(users.get(agent.model) ?? []), agent.name]);
  return users;
}

function providersOf(names: readonly string[]): readonly string[] {
  return [...new Set(names.map(providerOf))];
}

function providerOf(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf("/")));
}

interface Asked {
  readonly workspace: Workspace;
  readonly prices: PriceTable;
  readonly env: Terminal["env"];
}

async function factsOf(name: string, agents: readonly string[], asked: Asked): Promise<ModelFacts> {
  const { workspace, prices, env } = asked;
  const { settings } = workspace;
  const isSame = settings.model === undefined || providerOf(settings.model) === providerOf(name);
  const { baseUrl, apiKeyEnv } = isSame ? settings : {};
  const apiKey = apiKeyEnv === undefined ? undefined : env[apiKeyEnv];
  let model: Model;
  try {
    const address = baseUrl === undefined ? {} : { baseUrl };
    model = namedModel(name, { env, ...address, ...(apiKey !== undefined && { apiKey }) });
  } catch (error) {
    const lacks = Fault.from(error).message;
    return { model: name, agents, contextWindow: null, maxOutputTokens: null, usdPerMillion: null, lacks };
  }
  const { provider, modelId, maxOutputTokens = null } = model;
  const ownWindow = settings.model === name ? settings.contextWindow : undefined;
  return {
    model: name,
    agents,
    contextWindow: ownWindow ?? model.contextWindow ?? null,
    maxOutputTokens,
    usdPerMillion: perMillion(prices.find({ provider, modelId, inputTokens: 1, at: Date.now() })),
    lacks:
      apiKeyEnv !== undefined && (apiKey ?? "") === ""
        ? `the setting "apiKeyEnv" names ${variableName(apiKeyEnv, env)}, which the environment does not set`
        : await lackOf(model, workspace),
  };
}

/** Returns what is missing for a call of a model. A package of the project is used only if the project is trusted. */
async function lackOf(model: Model, { places, isTrusted }: Workspace): Promise<string | null> {
  const lack = lackOfModel(model);
  if (lack === undefined) return null;
  const wanted = providerFacts({}).find(({ name }) => name === model.provider)?.package;
  const isInProject =
    lack.code === "dependency_missing" &&
    wanted !== undefined &&
    (await findPackage(wanted, places.project)) !== undefined;
  if (!isInProject) return lack.message;
  return isTrusted ? null : `the package ${wanted} of the project is not trusted; run reeve trust`;
}

/** Returns the price of a million tokens of each kind. `null` if the price is unknown. */
function perMillion(price: ModelPrice | null): ModelFacts["usdPerMillion"] {
  if (price === null) return null;
  const parts = {
    input: price.inputUsd,
    output: price.outputUsd,
    cacheRead: price.cacheReadUsd,
    cacheWrite: price.cacheWriteUsd,
    reasoning: price.reasoningUsd,
  };
  return Object.fromEntries(
    Object.entries(parts).flatMap(([name, usd]) =>
      // A price per token has more digits than a price per million tokens.
      usd === undefined ? [] : [[name, Number((usd * 1e6).toFixed(6))]],
    ),
  );
}

const heading = ["MODEL", "WINDOW", "USD PER MILLION TOKENS", "AGENTS", "STATE"];

function rowOf({ model, agents, contextWindow, usdPerMillion, lacks }: ModelFacts): string[] {
  const { input = 0, output = 0 } = usdPerMillion ?? {};
  return [
    printable(model),
    contextWindow === null ? "unknown window" : `${counted(contextWindow)} tokens`,
    usdPerMillion === null ? "price unknown" : `$${input} in, $${output} out`,
    agents.length === 0 ? "-" : agents.map(printable).join(", "),
    lacks === null ? "ready" : printable(lacks),
  ];
}
