import type { Agent, AgentOptions } from "../assembly/agent.ts";
import { hiredAgent } from "../assembly/hired-agent.ts";
import type { GatewayOptions } from "../capabilities/gateway/gateway-options.ts";
import type { Gateway } from "../capabilities/gateway/gateway.ts";
import { upstreamsFrom } from "../capabilities/gateway/known-upstreams.ts";
import { presetNames, presetOf, type PresetName } from "../capabilities/hire/presets.ts";
import { providerDirectory } from "../capabilities/models/provider-directory.ts";
import { describeValue, Fault } from "../kernel/index.ts";
import type { AgentFile, AgentValues, Settings } from "./files/index.ts";

/** The value of `harness` for a program whose command the file gives. */
const anyProgram = "acp";

/** Names of the providers in names of models, such as `google/gemini-3-pro`, by the protocol (wire) of the gateway. */
const providers = { anthropic: "anthropic", openai: "openai", gemini: "google" } as const;

type WireName = keyof typeof providers;

/** What a hired agent is made from. */
export interface HiredParts {
  readonly file: AgentFile & { readonly harness: string };
  /** Values of the front matter and the settings. */
  readonly values: AgentValues;
  /** A model that the caller names. It takes precedence over that of the file. */
  readonly model: string | undefined;
  readonly sandbox: Settings["sandbox"];
  /** The folder of the workspace, in which the agent works. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The option `gateway` of `reeve.config.ts`. */
  readonly config: Partial<GatewayOptions> | undefined;
  /** Opens the gateway with these options, or returns the one that is open. */
  readonly openGateway: (options: GatewayOptions) => Promise<Gateway>;
  /** Further options. */
  readonly options: Pick<AgentOptions, "name" | "key" | "permissions" | "guardrails" | "extensions">;
}

/**
 * Creates the agent of a file with `harness`. Throws `invalid_argument` if the environment has no key for its
 * models.
 */
export async function hiredFromFile(parts: HiredParts): Promise<Agent> {
  const { file, values, sandbox, root, env, config = {}, openGateway, options } = parts;
  const { harness, path, instructions } = file;
  const { description, command, inheritEnv, idleMs, isolation, budget, onBudget, topUp } = values;
  const owner = `agent ${file.name} of ${path}`;
  const isAny = harness === anyProgram;
  if (isAny && command === undefined)
    throw new Fault(
      "invalid_argument",
      `missing "command" in ${path}: harness acp needs the program and its arguments; use command: [my-agent, acp], or one of the harnesses ${presetNames.join(", ")}`,
    );
  const wire = isAny ? undefined : (presetOf(harness, owner).wire as WireName);
  const upstreams = config.upstreams ?? upstreamsFrom(env);
  requireKey(owner, harness, wire, upstreams);
  const model = modelOf(owner, parts, wire);
  return hiredAgent({
    ...options,
    // `presetOf` has refused other names.
    ...(!isAny && { preset: harness as PresetName }),
    ...(command !== undefined && { command }),
    ...(model !== undefined && { model }),
    ...(description !== undefined && { description }),
    ...(instructions.trim() !== "" && { instructions }),
    ...(inheritEnv !== undefined && { inheritEnv }),
    ...(idleMs !== undefined && { idleMs }),
    ...(isolation !== undefined && { isolation: { worktree: { repository: root } } }),
    ...(budget !== undefined && { budget }),
    ...(onBudget !== undefined && { onBudget }),
    ...(topUp !== undefined && { topUp }),
    ...(sandbox !== undefined && { sandbox }),
    folder: root,
    gateway: await openGateway({ ...config, upstreams }),
  });
}

/** Throws for an agent that could not call a model, because the environment has no key for it. */
function requireKey(
  owner: string,
  harness: string,
  wire: WireName | undefined,
  upstreams: GatewayOptions["upstreams"],
): void {
  const has = wire === undefined ? Object.keys(upstreams).length > 0 : upstreams[wire] !== undefined;
  if (has) return;
  const wanted = wire === undefined ? Object.values(providers) : [providers[wire]];
  const names = wanted.flatMap((provider) => providerDirectory[provider]?.keys ?? []);
  throw new Fault(
    "invalid_argument",
    `${owner} cannot be hired: ${harness} needs the key of a provider in ${names.join(" or ")}, because a subscription has no price that a budget could bound; set it, or name the provider in gateway of reeve.config.ts`,
  );
}

/** Returns the model in the form that its provider uses. A file may name it as `provider/id`. */
function modelOf(
  owner: string,
  { file, model = file.model }: HiredParts,
  wire: WireName | undefined,
): string | undefined {
  if (model === undefined || wire === undefined || !model.includes("/")) return model;
  const provider = providers[wire];
  if (model.startsWith(`${provider}/`)) return model.slice(provider.length + 1);
  throw new Fault(
    "invalid_argument",
    `invalid model ${describeValue(model)} of ${owner}: ${file.harness} calls models of ${provider}; use ${provider}/id`,
  );
}
