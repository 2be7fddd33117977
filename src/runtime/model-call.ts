import {
  Fault,
  modelFor,
  systemMessage,
  type ChatMessage,
  type DeltaFilter,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
} from "../kernel/index.ts";
import { boundInput, type SentPrefix } from "./call-reservation.ts";
import { callThrough } from "./chat-path.ts";
import { readSources } from "./ephemeral-state.ts";
import { callAnswered, conclude, payFor } from "./model-answer.ts";
import type { OpenStep } from "./open-step.ts";
import type { TaskRunner } from "./task-runner.ts";
import { boundMessages } from "./token-bound.ts";

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
  const { ephemeral = [] } = request;
  const shown = ephemeral.length === 0 ? nothing : await runner.live(readSources(open, ephemeral));
  const whole = modelRequest(request, shown);
  const inputTokens = (by: Model): number => boundInput(request, sent, by) + boundMessages(shown);
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
const nothing: readonly ChatMessage[] = [];

function findModel(runner: TaskRunner, role: string): Model {
  const model = modelFor(runner.agent, role);
  if (model !== undefined) return model;
  const known = Object.keys(runner.agent.models ?? {}).join(", ");
  throw new Fault(
    "invalid_argument",
    `agent ${runner.agentId} has no model for the role ${role}; it has: ${known || "none"}`,
  );
}

function modelRequest(request: LlmRequest, shown: readonly ChatMessage[]): ModelRequest {
  const { transcript, instructions = "", ephemeral: _ephemeral, role: _role, ...rest } = request;
  const said = transcript.slice();
  const heard = shown.length === 0 ? said : [...said, ...shown];
  return { ...rest, messages: instructions === "" ? heard : [systemMessage(instructions), ...heard] };
}
