import {
  Fault,
  systemMessage,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
} from "../kernel/index.ts";
import { boundInput, type SentPrefix } from "./call-reservation.ts";
import { callThrough } from "./chat-path.ts";
import { callAnswered, conclude, payFor, type CalledModel } from "./model-answer.ts";
import type { OpenStep } from "./open-step.ts";

export type { SentPrefix } from "./call-reservation.ts";

export interface ModelCall {
  readonly open: OpenStep;
  readonly request: LlmRequest;
  readonly role: string;
  readonly sent: SentPrefix | undefined;
}

/** One turn's model call, through what stands around it (F1). */
export async function callModel(call: ModelCall): Promise<CalledModel> {
  const { open, request, role, sent } = call;
  const { agent } = open.runner;
  const model = findModel(call);
  const whole = modelRequest(request);
  const inputTokens = boundInput(request, sent);
  const chat = agent.callPath?.chat;
  if (chat !== undefined) return callThrough(chat, { open, model, whole, inputTokens, request, role });
  const answer = await callAnswered(
    open,
    { model, request: whole, inputTokens, filters: [] },
    { count: 0, turns: 1 },
  );
  const settle = (): LlmReply => conclude(open, answer, answer.response, payFor(open, answer));
  return { settle, counted: true };
}

function findModel({ open: { runner }, role }: ModelCall): Model {
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
  const system = instructions === "" ? [] : [systemMessage(instructions)];
  return { ...rest, messages: [...system, ...transcript, ...ephemeral] };
}
