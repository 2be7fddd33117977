import {
  Fault,
  systemMessage,
  type DeltaFilter,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
} from "../kernel/index.ts";
import { boundInput, type SentPrefix } from "./call-reservation.ts";
import { callThrough } from "./chat-path.ts";
import { callAnswered, conclude, payFor } from "./model-answer.ts";
import type { OpenStep } from "./open-step.ts";
import type { TaskRunner } from "./task-runner.ts";

export type { SentPrefix } from "./call-reservation.ts";

export interface ModelCall {
  readonly request: LlmRequest;
  readonly role: string;
  readonly sent: SentPrefix | undefined;
  /** Whose count of input is that of the transcript as it stands: not known of what middleware made of a request. */
  countedBy: Model | undefined;
}

/** One turn's model call, through what stands around it (F1). What it resolves to is for the breath in which the step is recorded. */
export async function callModel(open: OpenStep, call: ModelCall): Promise<() => LlmReply> {
  const { request, role, sent } = call;
  const { runner } = open;
  const model = findModel(runner, role);
  const whole = modelRequest(request);
  const inputTokens = (by: Model): number => boundInput(request, sent, by);
  const chat = runner.agent.callPath?.chat;
  if (chat !== undefined) {
    const { settle, countedBy } = await callThrough(chat, { open, model, whole, inputTokens, request, role });
    call.countedBy = countedBy;
    return settle;
  }
  const outgoing = { model, request: whole, role, inputTokens, filters: noFilters };
  const answer = await callAnswered(open, outgoing, { count: 0, turns: 1 });
  call.countedBy = answer.model;
  return () => conclude(open, answer, answer.response, payFor(open, answer));
}

const noFilters: readonly DeltaFilter[] = [];

function findModel(runner: TaskRunner, role: string): Model {
  const model = runner.agent.models?.[role];
  if (model !== undefined) return model;
  const known = Object.keys(runner.agent.models ?? {}).join(", ");
  throw new Fault(
    "invalid_argument",
    `agent ${runner.agentId} has no model for the role ${role}; it has: ${known || "none"}`,
  );
}

function modelRequest(request: LlmRequest): ModelRequest {
  const { transcript, instructions = "", ephemeral = [], role: _role, ...rest } = request;
  const said = transcript.slice();
  const heard = ephemeral.length === 0 ? said : [...said, ...ephemeral];
  return { ...rest, messages: instructions === "" ? heard : [systemMessage(instructions), ...heard] };
}
