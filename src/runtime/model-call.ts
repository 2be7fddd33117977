import {
  Fault,
  modelFor,
  systemMessage,
  type ChatMessage,
  type ChatMiddleware,
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

/** One turn's model call, through what stands around it (F1). What it comes to is for the breath in which the step is recorded. */
export function callModel(open: OpenStep, call: ModelCall): Promise<() => LlmReply> {
  const { ephemeral = [] } = call.request;
  const chat = open.runner.agent.callPath?.chat;
  if (ephemeral.length > 0 || chat !== undefined) return callWith(open, call, chat);
  return callPlain(open, call, nothing);
}

async function callWith(
  open: OpenStep,
  call: ModelCall,
  chat: ChatMiddleware | undefined,
): Promise<() => LlmReply> {
  const { request, role, sent } = call;
  const { ephemeral = [] } = request;
  const shown = ephemeral.length === 0 ? nothing : await open.runner.live(readSources(open, ephemeral));
  if (chat === undefined) return callPlain(open, call, shown);
  const model = findModel(open.runner, role);
  const whole = modelRequest(request, shown);
  const inputTokens = (by: Model): number => boundInput(request, sent, by) + boundMessages(shown);
  const { settle, countedBy } = await callThrough(chat, { open, model, whole, inputTokens, request, role });
  call.countedBy = countedBy;
  return settle;
}

function callPlain(open: OpenStep, call: ModelCall, shown: readonly ChatMessage[]): Promise<() => LlmReply> {
  const { request, role, sent } = call;
  const outgoing = {
    model: findModel(open.runner, role),
    request: modelRequest(request, shown),
    role,
    inputTokens: (by: Model): number => boundInput(request, sent, by) + boundMessages(shown),
    filters: noFilters,
  };
  return callAnswered(open, outgoing, { count: 0, turns: 1 }, (answer) => {
    call.countedBy = answer.model;
    return () => conclude(open, answer, answer.response, payFor(open, answer));
  });
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
  const { transcript, instructions = "" } = request;
  const said = instructions === "" ? transcript.slice() : transcript.after(systemMessage(instructions));
  const asked: Record<string, unknown> & { messages: ModelRequest["messages"] } = {
    messages: shown.length === 0 ? said : [...said, ...shown],
  };
  // One by one: leaving out some of all costs more.
  for (const key in request) if (!ofTheCall.has(key)) asked[key] = request[key as keyof LlmRequest];
  return asked;
}

/** What is for the runtime, not for the model. */
const ofTheCall: ReadonlySet<string> = new Set(["transcript", "instructions", "ephemeral", "role"]);
