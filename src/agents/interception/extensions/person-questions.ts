import {
  describeValue,
  Fault,
  type ApprovalDecision,
  type ExtensionUi,
  type JsonObject,
  type NoticeLevel,
  type PersonQuestion,
  type RunContext,
} from "../../../kernel/index.ts";
import type { HandlerTime } from "./handler-time.ts";

/** Who asks a person, and where. */
export interface Asker {
  readonly extension: string;
  /** Type of the event whose handler asks. */
  readonly event: string;
  readonly time: HandlerTime;
  /** The scope of the step in which the handler runs. */
  readonly ctx: () => RunContext;
  /** Throws if the handler may no longer ask. */
  readonly check: () => void;
}

const levels: readonly NoticeLevel[] = ["info", "warning", "error"];

/** Throws for a notice that is not a text, and for an unknown level. */
export function checkNotice(message: unknown, level: unknown): void {
  requireText("ui.notify()", message);
  if (levels.includes(level as NoticeLevel)) return;
  throw new Fault(
    "invalid_argument",
    `invalid level ${describeValue(level)} of ui.notify(): expected one of ${levels.join(", ")}`,
  );
}

/** The questions of one handler. Each is a step of the handler's scope, which waits durably for `RunHandle.approve`. */
export function personQuestions(asker: Asker): Omit<ExtensionUi, "notify"> {
  return {
    confirm: async (message) => {
      requireText("ui.confirm()", message);
      const { decision } = await ask(asker, "confirm", message, {});
      return decision === "approved";
    },
    select: async (message, choices) => {
      requireText("ui.select()", message);
      requireChoices(choices);
      return answerOf(asker, "select", message, { choices: [...choices] }, (answer) =>
        choices.find((choice) => choice === answer),
      );
    },
    input: async (message, { placeholder } = {}) => {
      requireText("ui.input()", message);
      if (placeholder !== undefined) requireText("placeholder of ui.input()", placeholder);
      const more = placeholder === undefined ? {} : { placeholder };
      return answerOf(asker, "input", message, more, (answer) =>
        typeof answer === "string" ? answer : undefined,
      );
    },
  };
}

type QuestionKind = "confirm" | "select" | "input";

/**
 * Asks until an approval contains a valid answer. `RunHandle.approve` refuses invalid answers, but mail may come
 * from other code.
 */
async function answerOf<Answer>(
  asker: Asker,
  kind: QuestionKind,
  message: string,
  more: JsonObject,
  read: (answer: unknown) => Answer | undefined,
): Promise<Answer | undefined> {
  for (;;) {
    const decision = await ask(asker, kind, message, more);
    if (decision.decision !== "approved") return undefined;
    const answer = read(decision.input);
    if (answer !== undefined) return answer;
  }
}

function ask(
  { extension, event, time, ctx, check }: Asker,
  kind: QuestionKind,
  message: string,
  more: JsonObject,
): Promise<ApprovalDecision> {
  check();
  const question: PersonQuestion = {
    kind,
    toolName: extension,
    callId: event,
    input: { message, ...more },
    reason: message,
  };
  return time.pauseFor(() => ctx().approval(question));
}

function requireText(place: string, value: unknown): asserts value is string {
  if (typeof value === "string" && value.trim() !== "") return;
  throw new Fault("invalid_argument", `invalid ${place}: expected a text, not ${describeValue(value)}`);
}

function requireChoices(choices: unknown): void {
  const isList = Array.isArray(choices) && choices.every((choice) => typeof choice === "string");
  if (isList && choices.length > 0 && new Set(choices).size === choices.length) return;
  throw new Fault(
    "invalid_argument",
    `invalid choices ${describeValue(choices)} of ui.select(): expected a list of different texts`,
  );
}
