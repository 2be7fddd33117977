import {
  Fault,
  type ChatMessage,
  type HandledInput,
  type JsonValue,
  type Model,
  type ModelReference,
  type SessionId,
  type ThinkingLevel,
  type ToolSpec,
  type Transcript,
  type Turn,
} from "../../kernel/index.ts";
import type { TurnRecord } from "../journal/shared-contents.ts";
import { resolveModel } from "../process/session-model.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { contentOf } from "./turn-history.ts";

/** Creates from its record the turn that agent code receives, and makes it the current turn of the task. */
export function thawTurn(runner: TaskRunner, record: TurnRecord, history: Transcript): Turn {
  const { maxToolCallsPerTurn = Infinity, model, thinkingLevel } = record;
  runner.maxToolCallsPerTurn = maxToolCallsPerTurn;
  runner.sessionModel = model && requireModel(runner, model);
  runner.thinkingLevel = thinkingLevel;
  runner.turn = { record, history };
  return new TakenTurn(runner, record, history);
}

/** Returns the model that the session sets. If no provider is known for it, throws before anything is paid. */
export function requireModel(
  { worker, agent, agentId, facts }: TaskRunner,
  reference: ModelReference,
): Model {
  const model = resolveModel(worker, agent, reference);
  if (model !== undefined) return model;
  const name = `${reference.provider}/${reference.modelId}`;
  throw new Fault(
    "model_not_found",
    `session ${facts.sessionId} of ${agentId} names the model ${name}, which this runtime does not know: set another one with sessions.setModel(), or pass resolveModel to openRuntime()`,
    { details: { model: name, sessionId: facts.sessionId } },
  );
}

/** Whether the turn belongs to this task, so that code that holds it has started an invocation of this task. */
export function isTurnOf(runner: TaskRunner, turn: unknown): boolean {
  return TakenTurn.isOf(runner, turn);
}

class TakenTurn implements Turn {
  readonly at: number;
  readonly input: JsonValue;
  readonly sessionId: SessionId | null;
  readonly leafId: string | null;
  readonly history: Transcript;
  readonly instructions: string;
  readonly instructionsHash: string;
  readonly tools: readonly ToolSpec[];
  readonly earlier: readonly ChatMessage[];
  readonly carried: JsonValue;
  readonly resumeCount: number;
  readonly isTransformed: boolean;
  readonly isSteered: boolean;
  readonly handled: HandledInput | null;
  readonly role: string;
  readonly model: ModelReference | null;
  readonly thinkingLevel: ThinkingLevel | null;
  readonly contextWindow: number | null;
  readonly #runner: TaskRunner;

  constructor(runner: TaskRunner, record: TurnRecord, history: Transcript) {
    this.at = record.at;
    this.input = record.input;
    // A task that shares the prompt of another one reads that task's session and writes to none.
    this.sessionId = record.role === undefined ? record.sessionId : null;
    this.leafId = record.role === undefined ? record.leafId : null;
    this.role = record.role ?? "main";
    this.history = history;
    this.instructions = contentOf(runner, record.instructions) as string;
    this.instructionsHash = record.instructions;
    this.tools = contentOf(runner, record.tools) as unknown as readonly ToolSpec[];
    this.earlier =
      record.earlier === undefined
        ? []
        : (contentOf(runner, record.earlier) as unknown as readonly ChatMessage[]);
    this.carried = record.carried ?? null;
    this.resumeCount = runner.task.resumed;
    this.isTransformed = record.isTransformed === true;
    this.isSteered = record.isSteered === true;
    this.handled = record.handled ?? null;
    this.model = record.model ?? null;
    this.thinkingLevel = record.thinkingLevel ?? null;
    this.contextWindow = runner.modelFor("main")?.contextWindow ?? null;
    this.#runner = runner;
  }

  static isOf(runner: TaskRunner, turn: unknown): boolean {
    return typeof turn === "object" && turn !== null && #runner in turn && turn.#runner === runner;
  }
}
