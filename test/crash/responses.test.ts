import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { WorkerProcess, type Death } from "../../src/testing/index.ts";
import { readAll } from "../runtime/runtime-setup.ts";
import { openCrashStore } from "./crash-store.ts";
import { killPoints } from "./kill-points.ts";

const script = new URL("responses-worker.mjs", inject("crashWorkers"));
const boundMs = 120_000;
/** Model calls of an answer that nothing interrupts. */
const turns = 3;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-responses-"));
});
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

/** A server process that is started again after it was killed. */
class MortalServer {
  readonly port: number;
  readonly #file: string;
  #worker: WorkerProcess;
  /** Resolves when a server listens that is not going to be killed, or one that was not killed yet. */
  #up: Promise<void>;
  /** The write at which the first process died. `undefined` if it did not. */
  killedAt: string | undefined;
  /** Model calls of which the log had the answer when the first process died. */
  recorded = 0;

  constructor(file: string, port: number, death: Death | null) {
    this.port = port;
    this.#file = file;
    this.#worker = this.#start(death);
    this.#up = this.#worker.hasSaid("listening").catch(() => this.#again());
  }

  #start(death: Death | null): WorkerProcess {
    const orders = {
      file: this.#file,
      workload: "responses",
      data: this.port,
      death,
      server: { url: "", caller: "" },
    };
    return WorkerProcess.start(script, orders, join(folder, "compiled"));
  }

  /** Waits until the killed process has ended, and starts another one. */
  async #again(): Promise<void> {
    const end = await this.#worker.endWithin(boundMs);
    if (end.kind !== "killed") throw new Error(`the server was not killed: ${JSON.stringify(end)}`);
    this.killedAt = end.write;
    const { messages } = await this.log();
    this.recorded = messages;
    this.#worker = this.#start(null);
    await this.#worker.hasSaid("listening");
  }

  /** The number of runs, and of recorded answers of the model. */
  async log(): Promise<{ readonly runs: number; readonly messages: number }> {
    const store = await openCrashStore(this.#file);
    try {
      const { runs } = await store.journal.list({});
      const [run] = runs;
      const events = run === undefined ? [] : await readAll(store, run.runId);
      const answers = events.filter(
        (event) => event.type === "message_end" && event.data.message.role === "assistant",
      );
      return { runs: runs.length, messages: answers.length };
    } finally {
      await store.close();
    }
  }

  /** Repeats a request whose connection breaks, at the next server. */
  async persist<Value>(request: () => Promise<Value>): Promise<Value> {
    for (let repeats = 0; ; repeats++) {
      await this.#up;
      try {
        return await request();
      } catch (error) {
        if (repeats === 3 || (error instanceof OpenAI.APIError && error.status !== undefined)) throw error;
        // A connection to the killed process may still be in the pool of the client.
        if (this.killedAt === undefined) this.#up = this.#again();
      }
    }
  }

  /** Ends the process and returns the kinds of its writes, and the number of model calls of each process. */
  async end(): Promise<{ readonly kinds: readonly string[]; readonly calls: readonly number[] }> {
    this.#worker.signal("SIGTERM");
    const end = await this.#worker.endWithin(boundMs);
    // The last writes are those of a process that closes its runtime.
    if (end.kind === "failed") throw new Error(end.reason);
    const lines = (await readFile(`${this.#file}.calls`, "utf8")).trim().split("\n");
    return {
      kinds: end.kind === "finished" ? end.kinds : [],
      calls: [...Map.groupBy(lines, (pid) => pid).values()].map(({ length }) => length),
    };
  }
}

/** What a client receives of two answers in the background: events, and the responses that it retrieves. */
interface View {
  readonly events: readonly ResponseStreamEvent[];
  readonly responses: readonly Response[];
}

async function converse(server: MortalServer): Promise<View> {
  const baseURL = `http://127.0.0.1:${server.port}/v1`;
  const { responses } = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
  const events: ResponseStreamEvent[] = [];
  const follow = async (id: string): Promise<Response> => {
    let last: ResponseStreamEvent | undefined;
    await server.persist(async () => {
      const after = last === undefined ? {} : { starting_after: last.sequence_number };
      for await (const event of await responses.retrieve(id, { stream: true, ...after })) {
        last = event;
        events.push(event);
      }
      // A connection that breaks between two chunks ends the stream as if it were complete.
      if (last?.type !== "response.completed") throw new OpenAI.APIConnectionError({ message: "incomplete" });
    });
    return server.persist(() => responses.retrieve(id));
  };
  const body = { model: "clerk", background: true };
  const first = await server.persist(() =>
    responses.create(
      {
        ...body,
        input: "Go",
        tools: [{ type: "function", name: "weather", parameters: { type: "object" }, strict: false }],
      },
      { headers: { "Idempotency-Key": "job" } },
    ),
  );
  const asked = await follow(first.id);
  const outputs = asked.output.flatMap((item) =>
    item.type === "function_call"
      ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "rain" }]
      : [],
  );
  const second = await server.persist(() =>
    responses.create({ ...body, input: outputs, previous_response_id: asked.id }),
  );
  return { events, responses: [asked, await follow(second.id)] };
}

/** A view without its times, and with the ids numbered: a recovery adds events to the log, which ids count. */
function normalised(view: View): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify(view)
    .replaceAll(/"(?:resp|msg|rs|fc|call)_[\w.-]+"/gu, (id) => {
      const known = ids.get(id) ?? `"id ${ids.size}"`;
      ids.set(id, known);
      return known;
    })
    .replaceAll(/"(created_at|completed_at)":\d+/gu, '"$1":0');
  return JSON.parse(text) as unknown;
}

test("a client sees the same background responses when the server is killed at any write, and no recorded model call is repeated", async () => {
  const port = await freePort();
  const whole = new MortalServer(join(folder, "whole.db"), port, null);
  const view = await converse(whole);
  const expected = normalised(view);
  expect(view.responses.map(({ output_text }) => output_text)).toEqual(["I dig.I ask.", "Gold in the rain."]);
  const { kinds, calls } = await whole.end();
  expect(calls).toEqual([turns]);

  const isKillPoint = killPoints();
  const deaths = kinds.flatMap((_kind, index) =>
    (["before", "after"] as const).flatMap((when) =>
      isKillPoint(index + 1, when, kinds) ? [{ at: index + 1, when }] : [],
    ),
  );
  const killed: string[] = [];
  for (const [index, death] of deaths.entries()) {
    const server = new MortalServer(join(folder, `${index}.db`), await freePort(), death);
    const seen = normalised(await converse(server));
    const { calls: made } = await server.end();
    const { runs } = await server.log();
    const place = `${death.when} write ${death.at}: ${server.killedAt}`;
    expect([place, runs, seen]).toEqual([place, 1, expected]);
    if (server.killedAt === undefined) continue;
    killed.push(place);
    // The process that goes on makes the calls of which the log had no answer. With all answers, it makes none.
    const rest = turns - server.recorded;
    expect([place, made.at(-1)]).toEqual([place, rest === 0 ? turns : rest]);
  }
  // Timing decides how many writes a process makes before the client is done.
  expect(killed.length).toBeGreaterThan(deaths.length / 2);
}, 600_000);
