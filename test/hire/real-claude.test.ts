import type { ServerResponse } from "node:http";

import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import type { Received } from "../capabilities/gateway/mock-upstream.ts";
import { hiredEvents, hireWorld } from "./hire-world.ts";

/** The program of `@agentclientprotocol/claude-agent-acp`, for example node_modules/.bin/claude-agent-acp of a folder. */
const program = process.env["REEVE_CLAUDE_AGENT_ACP"] ?? "";
const isWanted = process.env["REEVE_REAL_AGENTS"] === "1" && program !== "";

/** A model that always asks for another command, or says that it has finished, in streams of Anthropic. */
class LoopingModel {
  billed = 0;
  isDone = false;
  requests = 0;
  /** How often the last request contained the prompt. */
  prompts = 0;

  answer({ path, body }: Received, response: ServerResponse): void {
    if (path.includes("count_tokens")) {
      response.writeHead(200, { "content-type": "application/json" }).end('{"input_tokens":5}');
      return;
    }
    const request = JSON.parse(body.toString()) as {
      readonly max_tokens: number;
      readonly messages: unknown;
    };
    this.prompts = JSON.stringify(request.messages).split("Loop for ever, please").length - 1;
    const output = Math.min(request.max_tokens, 500);
    this.billed += output;
    const id = `toolu_${++this.requests}`;
    const input = JSON.stringify({ command: "echo x >> out.txt", description: "Writes" });
    const [block, delta, reason] = this.isDone
      ? [{ type: "text", text: "" }, { type: "text_delta", text: "It is done." }, "end_turn"]
      : [
          { type: "tool_use", id, name: "Bash", input: {} },
          { type: "input_json_delta", partial_json: input },
          "tool_use",
        ];
    const usage = { input_tokens: 5, output_tokens: output };
    const message = { id, type: "message", role: "assistant", model: "m", content: [], usage };
    const events = [
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: reason }, usage },
      { type: "message_stop" },
    ];
    const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
  }
}

test.skipIf(!isWanted)(
  "Claude Code stops at its budget in the sandbox, and continues its session after a top-up with the prompt sent once",
  async () => {
    const model = new LoopingModel();
    const world = await hireWorld((received, response) => model.answer(received, response));
    const agent = world.hire({
      preset: "claude-code",
      model: "claude-sonnet-4-5",
      command: [program],
      sandbox: { mode: "enforce", readable: [dirname(dirname(program))] },
      permissions: permissions({ mode: "bypass" }),
      budget: { maxCostUsd: 3 },
    });
    const run = await world.runtime.submit(agent, "Loop for ever, please");
    const first = await run.result();
    expect(first.status).toBe("budget_exhausted");
    expect(first.costUsd).toBe(model.billed / 1_000);
    expect(model.billed).toBeLessThanOrEqual(3_000);
    const { requests } = model;
    expect(await readFile(join(world.folder, "out.txt"), "utf8")).toBe("x\n".repeat(requests));
    model.isDone = true;
    await run.topUp({ maxCostUsd: 3 });
    const { status, output } = await run.result();
    expect([status, output, model.prompts]).toEqual(["completed", "It is done.", 1]);
    const events = (await hiredEvents(run)).filter((name) => name !== "usage" && name !== "cost_differs");
    expect(events).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
  },
);
