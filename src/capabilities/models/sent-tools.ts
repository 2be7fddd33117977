import {
  Fault,
  type AssistantPart,
  type ModelRequest,
  type ProviderMetadata,
  type ToolSpec,
} from "../../kernel/index.ts";

/** Providers that sell the models and the tools of another one, by their names in the AI SDK. */
const sellers: Readonly<Record<string, readonly string[]>> = {
  azure: ["openai"],
  bedrock: ["anthropic"],
  "amazon-bedrock": ["anthropic"],
  vertex: ["google", "anthropic"],
  "google-vertex": ["google", "anthropic"],
};

const makers: ReadonlySet<string> = new Set(["anthropic", "google", "openai"]);

/** The tools of a request in the form of the AI SDK. Throws if another provider executes a tool than the one of the model. */
export function sentTools(
  tools: readonly ToolSpec[],
  { provider, modelId }: { readonly provider: string; readonly modelId: string },
): readonly object[] {
  return tools.map(({ provider: own, ...tool }) => {
    if (own === undefined) return { type: "function", ...tool };
    const [maker = ""] = own.id.split(".", 1);
    // A provider with another name may be a proxy of the maker.
    const isOther =
      (makers.has(provider) || provider in sellers) &&
      provider !== maker &&
      sellers[provider]?.includes(maker) !== true;
    if (isOther)
      throw new Fault(
        "invalid_argument",
        `tool ${tool.name} is executed by ${maker}, and ${provider}/${modelId} is a model of another provider: remove the tool, or use a model of ${maker}`,
        { details: { toolName: tool.name } },
      );
    return { type: "provider", id: own.id, name: tool.name, args: own.args };
  });
}

/**
 * B1: adds the highest number of uses to the options of a request to OpenAI, which limits the tools that it executes together. The
 * limit of the caller stays if it is lower. Anthropic receives the limits in the arguments of each tool.
 */
export function withUseLimit(
  options: ProviderMetadata | undefined,
  tools: readonly ToolSpec[] = [],
): ProviderMetadata | undefined {
  const own = tools.flatMap(({ provider }) =>
    provider?.id.startsWith("openai.") === true ? [provider] : [],
  );
  const most = own.reduce((sum, { maxUses }) => sum + (maxUses ?? Infinity), 0);
  if (own.length === 0 || most === Infinity) return options;
  const given = options?.["openai"]?.["maxToolCalls"];
  const maxToolCalls = typeof given === "number" ? Math.min(given, most) : most;
  return { ...options, openai: { ...options?.["openai"], maxToolCalls } };
}

/** B3: how often the provider has executed each of its tools. `undefined` if the request had none. */
export function countUses(
  { tools = [] }: Pick<ModelRequest, "tools">,
  parts: readonly AssistantPart[],
): Readonly<Record<string, number>> | undefined {
  const names = tools.flatMap(({ name, provider }) => (provider === undefined ? [] : [name]));
  if (names.length === 0) return undefined;
  return Object.fromEntries(names.map((name) => [name, parts.filter((part) => isUseOf(name, part)).length]));
}

function isUseOf(name: string, part: AssistantPart): boolean {
  return part.type === "opaque" && part.value["type"] === "tool-call" && part.value["toolName"] === name;
}
