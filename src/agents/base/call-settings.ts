import { Fault, type CallSettings, type Dependencies, type ToolChoice } from "../../kernel/index.ts";

/** Returns the settings for every model call of an invocation, which are all settings except `toolChoice`. */
export function samplingOf(settings: CallSettings | null): Omit<CallSettings, "toolChoice"> {
  if (settings === null) return none;
  const { toolChoice: _, ...sampling } = settings;
  return sampling;
}

const none: CallSettings = Object.freeze({});

/**
 * Returns the tool choice of a call after the first one of a loop. A choice that requires a call applies only once: the
 * model would otherwise call tools until its turns are used up.
 */
export function laterToolChoice({ settings }: Dependencies): ToolChoice | undefined {
  return settings?.toolChoice === "none" ? "none" : undefined;
}

/**
 * Throws for a choice of a tool that the request does not contain, because providers answer this with an unclear
 * error.
 */
export function checkToolChoice({ settings, tools, ctx }: Dependencies): void {
  const { toolChoice } = settings ?? none;
  if (typeof toolChoice !== "object" || tools.find(toolChoice.toolName) !== undefined) return;
  const names = tools.list().map(({ name }) => name);
  throw new Fault(
    "invalid_argument",
    `invalid settings.toolChoice of a run of agent ${ctx.agentId}: unknown tool "${toolChoice.toolName}"; expected one of ${names.join(", ") || "none, because the agent has no tools"}`,
  );
}
