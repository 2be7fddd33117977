import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Agent, openRuntime, tool } from "reeve";
import type { Model, ModelRequest, ModelResponse } from "reeve/kernel";
import { median, type Row } from "./row.ts";

const turns = 50;
const calls = 5;
const resultBytes = 50_000;
const rounds = 9;
const usage = {
  inputTokens: 10,
  outputTokens: 5,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

/** 50 turns of 5 tool calls with results of 50 KB, against a plain write of the same results. */
export async function* largeResults(): AsyncIterable<Row> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-bench-"));
  try {
    const [ours, plain]: [Measured[], Measured[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      // The order alternates, because the second finds a warmer machine.
      const paths = [join(folder, `plain-${round}.db`), join(folder, `reeve-${round}.db`)] as const;
      if (round % 2 === 0) plain.push(writePlain(paths[0], round));
      ours.push(await runAgent(paths[1], round));
      if (round % 2 === 1) plain.push(writePlain(paths[0], round));
    }
    const ms = (each: readonly Measured[]): number => median(each.slice(2).map(({ tookMs }) => tookMs));
    yield {
      name: "large results: 250 of 50 KB, against a plain write",
      value: ms(ours),
      unit: "ms",
      against: ms(plain),
      goal: { atMost: 2 },
    };
    yield {
      name: "large results: size of the file, against the results",
      value: median(ours.map(({ fileBytes }) => fileBytes)) / 1e6,
      unit: "MB",
      against: (turns * calls * resultBytes) / 1e6,
      goal: { atMost: 1.2 },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Measured {
  readonly tookMs: number;
  readonly fileBytes: number;
}

/** No two results are equal. A buffer makes each a flat string, as one from a file or a socket is. */
function resultsOf(round: number): readonly string[] {
  return Array.from({ length: turns * calls }, (_, place) =>
    Buffer.alloc(resultBytes, `result ${place} of round ${round}, "quoted"\n`).toString("latin1"),
  );
}

/** One transaction per result. */
function writePlain(path: string, round: number): Measured {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  db.exec("CREATE TABLE results (id INTEGER PRIMARY KEY, body TEXT)");
  const insert = db.prepare("INSERT INTO results (body) VALUES (?)");
  const results = resultsOf(round);
  const began = performance.now();
  for (const result of results) insert.run(result);
  const tookMs = performance.now() - began;
  db.close();
  return { tookMs, fileBytes: statSync(path).size };
}

async function runAgent(path: string, round: number): Promise<Measured> {
  const results = resultsOf(round);
  const fetch = tool({
    name: "fetch",
    description: "Fetches a page",
    inputSchema: { type: "object", properties: { place: { type: "integer" } }, required: ["place"] },
    execute: async (input) => results[(input as { readonly place: number }).place] ?? "",
  });
  const agent = new Agent({
    name: "reader",
    model: scriptedReader(),
    instructions: "You read pages.",
    tools: [fetch],
    maxTurns: turns + 1,
  });
  const runtime = await openRuntime({ store: `sqlite:${path}`, unknownPrice: "ignore" });
  const began = performance.now();
  const run = await runtime.submit(agent, "go");
  const { output } = await run.result();
  const tookMs = performance.now() - began;
  if (output !== "done") throw new Error(`the run ended with ${JSON.stringify(output)}`);
  await runtime.close();
  return { tookMs, fileBytes: statSync(path).size };
}

function scriptedReader(): Model {
  let turn = 0;
  const answer = (): ModelResponse => {
    if (turn === turns)
      return {
        message: { role: "assistant", content: [{ type: "text", text: "done" }] },
        stopReason: "stop",
        usage,
      };
    const content = Array.from({ length: calls }, (_, index) => {
      const place = turn * calls + index;
      return { type: "tool_call", callId: `call-${place}`, toolName: "fetch", input: { place } } as const;
    });
    turn++;
    return { message: { role: "assistant", content }, stopReason: "tool_calls", usage };
  };
  return {
    provider: "bench",
    modelId: "bench",
    generate: async () => answer(),
    stream: async function* stream(_request: ModelRequest) {
      yield { type: "finish", ...answer() };
    },
  };
}
