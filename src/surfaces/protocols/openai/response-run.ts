import { answerParts } from "../../../agents/index.ts";
import {
  agentNameOf,
  Fault,
  type CancelSignal,
  type Delta,
  type Event,
  type JsonObject,
  type RunHandle,
} from "../../../kernel/index.ts";
import type { RouteRequest } from "../../http/route.ts";
import { readQuestions, type AskedQuestions } from "../client-answers.ts";
import { readResponseId, responseIdOf } from "./openai-ids.ts";
import { ResponseFold, ResponseTally, type ResponseEvent } from "./response-fold.ts";
import { echoKey, responseSchemaOf, type ResponseEcho } from "./response-parameters.ts";
import { responseOf, type ResponseHead, type ResponseResource } from "./response-resource.ts";

/** A response: a part of a run, as the log of the run has it. */
export interface StoredResponse {
  readonly run: RunHandle;
  readonly head: ResponseHead;
  /** Number of questions of the run before this answer. */
  readonly questionsBefore: number;
}

/** A response as it is now. */
export interface CurrentResponse {
  readonly resource: ResponseResource;
  /** Ids of the calls with which the answer has ended. */
  readonly calls: readonly string[];
  /** Whether the run waits at the end of the answer: for outputs of its calls, or for a person if it has none. */
  readonly isWaiting: boolean;
}

/**
 * Finds a response by its id, in the view of the caller. `undefined` if the caller has none with this id that was stored. Costs
 * O(events of the run) for an answer to outputs of calls, otherwise O(1).
 */
export async function findResponse(
  request: Pick<RouteRequest, "runtime" | "access">,
  id: string,
): Promise<StoredResponse | undefined> {
  const place = readResponseId(id);
  const found = place === undefined ? undefined : await request.runtime.find(place.runId);
  if (place === undefined || found === undefined) return undefined;
  const { access } = request;
  const response = await readResponse(found.as(access.userId ?? access.name), place.fromSeq);
  return response?.head.echo.store === false ? undefined : response;
}

/** Reads the response that begins at an event of a run. `undefined` if no request for a response started the run. */
export async function readResponse(run: RunHandle, fromSeq: number): Promise<StoredResponse | undefined> {
  const { runId } = run;
  const [start] = await firstEvents(run, 0);
  if (start?.type !== "run_start" || start.erased === true) return undefined;
  const { metadata, changes, agentId } = start.data;
  const echo = metadata[echoKey] as ResponseEcho | undefined;
  if (echo === undefined) return undefined;
  const head = {
    place: { runId, fromSeq },
    createdAt: start.at,
    model: agentNameOf(agentId),
    previous: echo.previous_response_id ?? null,
    echo,
    tools: changes?.clientTools ?? [],
  };
  if (fromSeq === 0) return { run, head, questionsBefore: 0 };
  const [before] = await firstEvents(run, fromSeq - 1);
  if (before === undefined) return undefined;
  const questions = await readQuestions(run);
  const starts = startsOf(questions).filter((seq) => seq < fromSeq);
  return {
    run,
    head: {
      ...head,
      createdAt: before.at,
      previous: responseIdOf({ runId, fromSeq: starts.at(-1) ?? 0 }),
    },
    questionsBefore: questions.all.filter(({ seq }) => seq < fromSeq).length,
  };
}

/** Places of the responses of a run: its start, and after the calls of each answer whose outputs the run has received. */
function startsOf({ all, answeredAt }: AskedQuestions): readonly number[] {
  const starts = [0];
  const calls = all.filter(({ request }) => request.kind === "client_tool");
  for (const at of answeredAt) {
    const last = calls.findLast(({ seq }) => seq < at);
    if (last !== undefined && last.seq >= (starts.at(-1) ?? 0)) starts.push(last.seq + 1);
  }
  return starts;
}

/** Reads all responses of a run, the first one first. Costs O(events of the run) for each. */
export async function responsesOf(run: RunHandle): Promise<readonly ResponseResource[]> {
  const all: ResponseResource[] = [];
  for (const fromSeq of startsOf(await readQuestions(run))) {
    const response = await readResponse(run, fromSeq);
    if (response !== undefined) all.push((await currentResponse(response)).resource);
  }
  return all;
}

async function firstEvents(run: RunHandle, fromSeq: number): Promise<readonly Event[]> {
  for await (const event of run.events({ fromSeq, follow: false })) if ("seq" in event) return [event];
  return [];
}

/** A response that is being read. */
export class ResponseReading {
  readonly #response: StoredResponse;
  readonly #fold: ResponseFold;
  readonly #tally: ResponseTally;
  #isWaiting = false;

  constructor(response: StoredResponse) {
    const { run, head, questionsBefore } = response;
    const isStructured = responseSchemaOf(head.echo) !== undefined;
    this.#response = response;
    this.#fold = new ResponseFold({ runId: run.runId, questionsBefore, isStructured });
    this.#tally = new ResponseTally(head.place.fromSeq);
  }

  /** Yields the events of the response until it ends. A response in the background goes on while its run waits for a person. */
  async *events(items: AsyncIterable<Event | Delta>): AsyncGenerator<ResponseEvent, void, undefined> {
    const { run, head } = this.#response;
    const { fromSeq } = head.place;
    const fold = this.#fold;
    const isBackground = head.echo.background === true;
    const starting = responseOf(head, { status: "in_progress", output: [] });
    yield { type: "response.created", response: starting };
    yield { type: "response.in_progress", response: starting };
    const parts = answerParts(run, this.#tally.watch(items), {
      fromSeq,
      endsWith: (open) => {
        const calls = open.filter(({ kind }) => kind === "client_tool");
        return (
          calls.every(({ questionId }) => fold.asks(questionId)) && !(isBackground && calls.length === 0)
        );
      },
    });
    for await (const part of parts) {
      this.#isWaiting = part.type === "waiting";
      yield* fold.read(part);
      if (fold.end !== undefined) break;
    }
  }

  /** The last event of a response that has ended. */
  async last(): Promise<ResponseEvent> {
    const { resource } = await (this.#fold.isReset ? currentResponse(this.#response) : this.current());
    const { status } = resource;
    const type = status === "completed" || status === "incomplete" ? `response.${status}` : "response.failed";
    return { type, response: resource as unknown as JsonObject };
  }

  /** Whether the response has ended. */
  get hasEnded(): boolean {
    return this.#fold.end !== undefined;
  }

  /** The response as far as it was read. */
  async current(): Promise<CurrentResponse> {
    const { run, head } = this.#response;
    const { end, output, calls } = this.#fold;
    const { usage, lastAt, askedAt, hasStarted } = this.#tally;
    if (end === undefined) {
      const { status } = await run.summary();
      const isQueued = status === "pending" && !hasStarted;
      const state = { status: isQueued ? "queued" : "in_progress", output } as const;
      return { resource: responseOf(head, state), calls: [], isWaiting: false };
    }
    const isWaiting = this.#isWaiting;
    const completedAt = isWaiting || calls.length > 0 ? askedAt : lastAt;
    const state = { status: "completed", output, usage, completedAt, ...end } as const;
    return { resource: responseOf(head, state), calls, isWaiting };
  }
}

/** Reads a response as it is now. Costs O(events of the run). */
export async function currentResponse(response: StoredResponse): Promise<CurrentResponse> {
  const reading = new ResponseReading(response);
  await drain(reading.events(response.run.events({ follow: false })));
  return reading.current();
}

/** Waits until a response has ended. `undefined` if the signal aborts first; the run continues (C3). */
export async function endedResponse(
  response: StoredResponse,
  signal: CancelSignal,
): Promise<CurrentResponse | undefined> {
  const reading = new ResponseReading(response);
  await drain(reading.events(response.run.events({ signal })));
  if (!reading.hasEnded) return undefined;
  return reading.current();
}

async function drain(items: AsyncGenerator): Promise<void> {
  let result;
  do result = await items.next();
  while (result.done !== true);
}

/** The fault of an id that names no response of the caller. */
export function unknownResponse(id: string, param: string): Fault {
  return new Fault(
    "not_found",
    `there is no response ${JSON.stringify(id.slice(0, 200))} of yours; use the id of a response of this server that was created without store: false`,
    {
      details: {
        param,
        openAiCode: param === "previous_response_id" ? "previous_response_not_found" : "not_found",
      },
    },
  );
}
