import { agentNameOf, type Fault, type JsonValue, type RunHandle } from "../../../kernel/index.ts";
import type { RouteRequest } from "../../http/route.ts";
import { runIdOfKey } from "../../http/start-run.ts";
import { answerQuestions, readQuestions, type AskedQuestion } from "../client-answers.ts";
import { invalidParameter } from "./openai-parameters.ts";
import { callIdOf, readCallId } from "./openai-ids.ts";

/** The output of a call, as a client sends it. */
export interface CallOutput {
  readonly callId: string;
  readonly value: string;
  /** The place of the output in the request, such as `input[1]`. */
  readonly place: string;
}

/** What a request has after the last part of an answer. */
export interface GivenOutputs {
  readonly outputs: readonly CallOutput[];
  /** The messages of the user, as one. `undefined` if there are none. */
  readonly said: JsonValue | undefined;
  /** Whether the request contains parts of an answer. */
  readonly hasAnswer: boolean;
}

/** The outputs of a request and the run whose calls they answer. */
export interface CallAnswers {
  /** The run. Its commands carry the name of the caller. */
  readonly run: RunHandle;
  /** Seq of the first event that can belong to the answer. */
  readonly fromSeq: number;
  /** Ids of the questions that the outputs answer. The run may wait for them until its owner has read the outputs. */
  readonly answered: ReadonlySet<string>;
  /** Whether an output is one that the run has not read. */
  readonly isNew: boolean;
  /** An output that differs from the one that the run has read. `undefined` if there is none. */
  readonly changed: CallOutput | undefined;
  /** Delivers the outputs. The first output of a call counts. */
  send(): Promise<void>;
}

/**
 * Finds the run of outputs by the ids of their calls, which this server has issued: in the view of the caller, and never by the
 * history that the client sends. Throws `invalid_argument` for an id that is unknown to the caller, and if another call waits for its
 * output as well, because the run cannot continue without it. Costs O(events of the run).
 */
export async function readAnswers(
  { runtime, access }: Pick<RouteRequest, "runtime" | "access">,
  outputs: readonly CallOutput[],
): Promise<CallAnswers> {
  const [first] = outputs;
  const runId = first === undefined ? undefined : readCallId(first.callId)?.runId;
  const found = runId === undefined ? undefined : await runtime.find(runId);
  if (first === undefined || runId === undefined || found === undefined) throw unknownCall(first);
  const run = found.as(access.userId ?? access.name);
  const questions = await readQuestions(run);
  const given = new Map<AskedQuestion, CallOutput>();
  for (const output of outputs) {
    const call = readCallId(output.callId);
    if (call !== undefined && call.runId !== runId)
      throw invalidParameter(
        output.place,
        `invalid ${output.place}: ${output.callId} and ${first.callId} are calls of different answers; send their outputs in separate requests`,
      );
    const question = call === undefined ? undefined : questions.all[call.index];
    if (question?.request.kind !== "client_tool") throw unknownCall(output);
    if (given.has(question))
      throw invalidParameter(
        output.place,
        `invalid ${output.place}: the request has two outputs of ${output.callId}`,
      );
    given.set(question, output);
  }
  const isNew = questions.open.some((question) => given.has(question));
  const missing = questions.open.find(
    (question) => question.request.kind === "client_tool" && !given.has(question),
  );
  if (isNew && missing !== undefined)
    throw missingOutput(callIdOf({ runId, index: questions.all.indexOf(missing) }));
  const changed = [...given].find(([{ questionId }, { value }]) => {
    const known = questions.decisions.get(questionId);
    return known !== undefined && !isOutput(known, value);
  })?.[1];
  return {
    run,
    fromSeq: Math.max(...[...given.keys()].map(({ seq }) => seq)) + 1,
    answered: new Set([...given.keys()].map(({ questionId }) => questionId)),
    isNew,
    changed,
    send: async () => {
      await answerQuestions(run, questions, (question) => {
        const output = given.get(question);
        return output === undefined ? undefined : { type: "result", value: output.value, isError: false };
      });
    },
  };
}

/**
 * Like `readAnswers`. Returns `undefined` if the outputs are a part of the history: a message of the user follows, and the calls are
 * those of an answer that is over, or of another server.
 */
export async function findAnswers(
  request: Pick<RouteRequest, "runtime" | "access">,
  { outputs, said, hasAnswer }: GivenOutputs,
): Promise<CallAnswers | undefined> {
  const mayBeHistory = said !== undefined && hasAnswer;
  if (mayBeHistory && !(await isKnown(request, outputs))) return undefined;
  const answers = await readAnswers(request, outputs);
  if (mayBeHistory && !answers.isNew) return undefined;
  if (answers.changed !== undefined) throw changedOutput(answers.changed);
  return answers;
}

/** Whether the caller has a run to which one of the calls belongs. */
async function isKnown(
  { runtime }: Pick<RouteRequest, "runtime">,
  outputs: readonly CallOutput[],
): Promise<boolean> {
  for (const { callId } of outputs) {
    const call = readCallId(callId);
    if (call !== undefined && (await runtime.find(call.runId)) !== undefined) return true;
  }
  return false;
}

/** Delivers outputs. A message of the user that follows them is read before the next model call. */
export async function sendAnswers(
  { access }: Pick<RouteRequest, "access">,
  model: string,
  answers: CallAnswers,
  { said, outputs }: GivenOutputs,
): Promise<CallAnswers> {
  const { run, isNew } = answers;
  const agent = agentNameOf(run.agentId);
  if (agent !== model)
    throw invalidParameter(
      "model",
      `invalid model ${JSON.stringify(model)}: the calls are those of agent ${agent}, which continues; use this name`,
    );
  if (said !== undefined && isNew) {
    const id = runIdOfKey(access, "after outputs", ...outputs.map(({ callId }) => callId));
    await run.steer(said, { id });
  }
  await answers.send();
  return answers;
}

function isOutput(
  decision: { readonly decision: string; readonly input?: JsonValue },
  value: string,
): boolean {
  return decision.decision === "approved" && decision.input === value;
}

/** The fault of an answer to calls that lacks the output of one of them. */
export function missingOutput(callId: string): Fault {
  return invalidParameter(
    "input",
    `the request has no output of call ${callId}, for which the agent waits; send the outputs of all calls of the answer`,
  );
}

/** The fault of an output that differs from the one with which the agent has continued. */
function changedOutput({ callId, place }: CallOutput): Fault {
  return invalidParameter(
    place,
    `invalid ${place}: call ${callId} has another output already, with which the agent has continued; send the same output, or start a new answer`,
  );
}

/** The id is cut, because anything may be in it. */
function unknownCall(output: CallOutput | undefined): Fault {
  const { callId = "", place = "input" } = output ?? {};
  return invalidParameter(
    place,
    `invalid ${place}: there is no call ${JSON.stringify(callId.slice(0, 100))} of a function of yours; use the id of a call that an answer of this server contains`,
  );
}
