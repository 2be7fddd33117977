import {
  contextMessages,
  deepFreeze,
  type JsonValue,
  type RunContext,
  type TurnOpening,
  type TurnPlan,
} from "../../kernel/index.ts";
import { readInput, type ReadInput } from "../base/agent-input.ts";
import { withFormat } from "../base/answer-format.ts";
import { planTurn } from "./plan-turn.ts";
import type { Place } from "./close-invocation.ts";
import type { AgentPlan } from "../definition/agent-plan.ts";
import type { ExtensionHost } from "../interception/extensions/extension-host.ts";

/**
 * Prepares an invocation of an agent with extensions, inside the step `turn`: the handlers of `input`, the prompt,
 * `before_agent_start`, the history, `context`. `scoped` is the scope of the step.
 */
export async function planExtendedTurn(
  plan: AgentPlan,
  host: ExtensionHost,
  ctx: RunContext,
  read: ReadInput,
  place: Place,
  opening: TurnOpening,
  scoped: RunContext,
): Promise<TurnPlan> {
  const handlers = host.placeIn(() => scoped);
  const { input, channel } = opening;
  const first: JsonValue = input ?? (read.attachments as unknown as JsonValue);
  const raw =
    read.message === undefined || input !== null || read.attachments.length > 0 ? first : read.prompt;
  const event = deepFreeze({ input: raw, text: read.prompt, channel });
  const { event: last, answer } =
    read.message === undefined ? { event, answer: undefined } : await host.answer("input", event, handlers);
  if (answer?.action === "handled")
    return { input, instructions: "", tools: [], handled: { reply: answer.reply ?? null } };
  const isTransformed = last.input !== raw;
  const given = isTransformed ? withMessage(read, last.input) : read;
  const { output, ...unformatted } = given;
  const added = await host.promptText(ctx.facts, handlers);
  const planned = await planTurn(plan, ctx, unformatted, place, opening, added);
  const { event: started } = await host.answer(
    "before_agent_start",
    { systemPrompt: planned.instructions, text: given.prompt },
    handlers,
  );
  host.notePrompt(ctx, started.systemPrompt);
  const history = planned.history ?? contextMessages(opening.path);
  const { event: seen } = await host.answer("context", { messages: deepFreeze(history) }, handlers);
  return {
    ...planned,
    input: isTransformed ? last.input : planned.input,
    isTransformed,
    instructions: output === undefined ? started.systemPrompt : withFormat(started.systemPrompt, output),
    ...(seen.messages !== history && { history: seen.messages }),
  };
}

/** Returns the input of an invocation whose message an extension has replaced. */
export function withMessage(read: ReadInput, input: JsonValue): ReadInput {
  const replaced = readInput(input);
  if (replaced === undefined) return read;
  const { prompt, attachments, message } = replaced;
  return { ...read, prompt, attachments, message };
}
